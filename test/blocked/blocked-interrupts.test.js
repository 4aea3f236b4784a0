'use strict'

// Samples and reports from inside run on top of any code of the loop's thread: longstack's own hooks and
// captures, and the program's regular expression matches. Neither is affected.

const path = require('node:path')
const test = require('ava')
const { preserveRegExpStatics } = require('../../lib/blocked/regexp-statics')
const { node, program, register, root } = require('../helpers/run')
const { watched } = require('../helpers/watchdog')

const reEntry = path.join(root, 'test', 'fixtures', 'blocked', 're-entry.js')

watched(test, 'samples on top of hooks, captures and queries change nothing of them', async (t) => {
  const source = `require(${JSON.stringify(reEntry)}).main(require(${JSON.stringify(root)}))`
  const env = { LONGSTACK_BLOCKED: '1', LONGSTACK_CAPTURE: 'native', MS: '1500' }
  const { stdout, stderr, code } = await node(['-r', reEntry, '-r', register, '-e', source], { env })
  t.is(code, 0, stderr)
  const { samples, inOwnWork, wrong } = JSON.parse(stdout)
  t.log({ samples, inOwnWork })
  t.deepEqual(wrong, [])
  t.true(samples > 10 && inOwnWork > 0)
})

watched(test, 'a global match goes on as it was after a report from inside', async (t) => {
  const { stdout, stderr, code } = await program(`
    const trace = require(${JSON.stringify(root)})
    const text = 'aaaaaaaaaaaaaaaaac '.repeat(40)
    const expected = '<c>'.repeat(40)
    const results = new Set()
    let inside = 0
    trace.on('blocked', ({ stillRunning }) => {
      if (stillRunning) inside++
      for (let i = 0; i < 50; i++) 'zzz yyy xxx'.replace(/(z+) (y+) (x+)/g, '$3 $2 $1')
    })
    function match () {
      const end = process.cpuUsage().user + 900e3 // time in which the thread waits for a CPU is not counted
      while (process.cpuUsage().user < end) {
        results.add(text.replace(/((a+)+)b|(c) /g, '<$3>').replaceAll('a', ''))
        for (let i = 0, until = Date.now() + 20; Date.now() < until; i++) Math.sqrt(i)
      }
    }
    let rounds = 0
    const next = () => {
      match()
      if (++rounds < 3 || (inside === 0 && rounds < 20)) setTimeout(next, 1)
      else console.log(JSON.stringify({ inside: inside > 0, right: [...results].every((text) => text === expected) }))
    }
    next()`, { env: { LONGSTACK_BLOCKED: '20', LONGSTACK_CAPTURE: 'native' } })
  t.is(code, 0, stderr)
  t.deepEqual(JSON.parse(stdout), { inside: true, right: true })
})

const names = /** @type {const} */ (['input', 'lastMatch', 'lastParen', 'leftContext', 'rightContext', '$1', '$2', '$3', '$9'])
const statics = () => names.map((name) => /** @type {any} */ (RegExp)[name])

test('the static properties of RegExp are restored, even after a long input', (t) => {
  const long = 'ab '.repeat(500_000)
  /** @type {Array<[RegExp, string]>} */
  const matches = [
    [/b(c)?(d+)/, 'abddx'], [/(?=.*(z))(a)/, 'a b z'], [/(?<=(x).*)(y)$/, 'x-xy'], [/()()(.)$/, 'a\ud800\n'],
    [/(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)/, '0123456789'], [/b (?=ab $)/, long], [/(a)(b) $/, long], [/^(ab )+/, long], [/$/, '']
  ]
  for (const [expression, text] of matches) {
    expression.exec(text)
    const before = statics()
    preserveRegExpStatics(() => { /(o)(ther)/.exec('another') })
    t.deepEqual(statics(), before, String(expression))
  }
})
