'use strict'

// An error is reported with its own maker's chain, or only the reader is reported as known: functions that
// many flows share, and timers that are set again, prove nothing.

const test = require('ava')
const { program, split } = require('../helpers/run')

const flows = (/** @type {string} */ read) => `'use strict'
  let kept
  const queue = []
  function dispatch () { if (queue.shift() === 'A') kept = new Error('made for A'); else ${read} }
  function flowA () { queue.push('A'); setTimeout(dispatch, 1) }
  function flowB () { queue.push('B'); setTimeout(dispatch, 1) }
  setTimeout(flowA, 1)
  setTimeout(flowB, 20)`

/** @type {Array<[string, string, RegExp, RegExp]>} what, program, the maker, somebody else */
const programs = [
  ['read by another flow in the same function', flows('console.log(kept.stack)'), /at flowA /, /at flowB /],
  [
    'read in a timer that another flow set in the same function',
    flows('setTimeout(function read () { console.log(kept.stack) }, 1)'),
    /at flowA /,
    /at flowB /
  ],
  ['made in the first run of a timer that was refreshed since', `
    let kept, timer
    function run () { kept ??= new Error('first run') }
    function start () { timer = setTimeout(run, 1) }
    function again () { timer.refresh() }
    setTimeout(start, 1)
    const watch = setInterval(() => {
      if (kept === undefined) return
      clearInterval(watch)
      again()
      setTimeout(function reader () { console.log(kept.stack) }, 20)
    }, 5)`, /at start /, /at again /]
]

for (const capture of ['auto', 'js']) {
  for (const [what, source, maker, other] of programs) {
    test(`${capture}: an error ${what} does not have another flow's chain as a fact`, async (t) => {
      const { stdout, stderr } = await program(source, { env: { LONGSTACK_CAPTURE: capture } })
      t.is(stderr, '')
      const { hops } = split(stdout)
      t.true(hops.length >= 1, stdout)
      const isReader = hops[0].title.includes('reader')
      const frames = hops.map((hop) => hop.frames).join('\n')
      t.true(isReader || (maker.test(frames) && !other.test(frames)), stdout)
    })
  }
}
