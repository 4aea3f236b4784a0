'use strict'

// The time of a step is stored in quarters of a ms in 32 bits: it passes 2 ** 31 after 6.2 days, and wraps
// after 12.4. Ages are still as exact as in the first second.

const path = require('node:path')
const test = require('ava')
const { loadBinding } = require('../../lib/stacks/binding')
const { program, root } = require('../helpers/run')
const { stories } = require('../helpers/stories')

const engines = loadBinding().failure === undefined ? ['native', 'js'] : ['js']
const HALF = 2 ** 29 // ms
const BORDER = 2 * HALF - 100 // soon ticks begin at 0 again
const uptimes = [HALF - 100, BORDER, 3 * HALF - 100, 2 * HALF + 5, 9 * HALF + 5]

for (const engine of engines) {
  for (const uptime of uptimes) {
    const env = {
      LONGSTACK_CAPTURE: engine,
      NODE_OPTIONS: `-r ${path.join(root, 'test', 'fixtures', 'ids', 'uptime.js')}`,
      UPTIME: String(uptime)
    }

    test(`${engine}: hops are right after ${uptime} ms`, async (t) => {
      for (const theme of ['timers', 'loops', 'promises']) {
        for (const { name, chain, elapsedMs } of Object.values(await stories(theme, env))) {
          let younger = 0
          for (const { ageMs } of chain) {
            if (ageMs === null && uptime === BORDER) continue // of the quarter of a ms whose number is 0
            t.true(ageMs >= younger - 1 && ageMs <= elapsedMs + 1, `${name}: ${ageMs} ms is no age`)
            younger = ageMs
          }
        }
      }
    })

    test(`${engine}: handles, awaits, profiles and spans are right after ${uptime} ms`, async (t) => {
      const { stdout, stderr } = await program(`
        const trace = require(${JSON.stringify(root)})
        const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
        const spans = []
        trace.on('span', ({ startTimeUnixNano, endTimeUnixNano, attributes }) => {
          spans.push(Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6, Math.abs(Number(startTimeUnixNano) / 1e6 - Date.now()))
        })
        async function hang () { await new Promise(() => {}) }
        setTimeout(async function begin () {
          const timer = setInterval(() => {}, 1e6)
          hang()
          const profiled = trace.profile({ seconds: 2, samples: false })
          await trace.span('work', () => wait(150))
          while (spans.length === 0) await wait(30)
          const [{ oldestMs }] = trace.pending()
          const { ageMs, idleMs } = trace.why(timer)
          const { chains } = await profiled
          const waited = Math.max(...chains.map(({ waitedMs }) => waitedMs))
          const lasted = performance.now()
          console.log(JSON.stringify({ ages: [oldestMs, ageMs, idleMs, ...spans, waited], lasted, fault: trace.stats().fault }))
          process.exit()
        }, 5)`, { env })
      t.is(stderr, '')
      const { ages, lasted, fault } = JSON.parse(stdout)
      t.is(fault, undefined)
      t.is(ages.length, 6)
      for (const age of ages) t.true(age > 0 && age < lasted + 1, `${ages} of ${lasted} ms`)
    })
  }
}
