'use strict'

// The type of a program's AsyncResource is unrestricted as data; in text it yields no escapes and no frames.

const test = require('ava')
const { program } = require('../helpers/run')

const hostile = '\u001b[31mX\n    at forged (x.js:1:1)\u202e\u009b2J'

for (const engine of ['native', 'js']) {
  test(`a type with escapes and forged frames harms neither stacks, spans nor data; ${engine}`, async (t) => {
    const { stdout, stderr, code } = await program(`
      const { AsyncResource } = require('node:async_hooks')
      const trace = require(${JSON.stringify(require('../helpers/run').root)})
      const records = []
      trace.on('span', (record) => records.push(record))
      new AsyncResource(${JSON.stringify(hostile)}).runInAsyncScope(() => setTimeout(() => {
        const { stack } = new Error('x')
        trace.span('work', () => {})
        const types = trace.chain().map(({ type }) => type)
        setTimeout(() => { trace.stats(); console.log(JSON.stringify({ stack, types, text: trace.stack(), records })) }, 5)
      }, 1))`, { env: { LONGSTACK_CAPTURE: engine } })
    t.is(code, 0, stderr)
    const { stack, types, text, records } = JSON.parse(stdout)
    t.true(types.includes(hostile), 'data is what the program gave')
    for (const printed of [stack, text, records[0].attributes['code.stacktrace']]) {
      for (const char of ['\u001b', '\u009b', '\u202e']) t.false(printed.includes(char))
      t.false(/^ +at forged/m.test(printed))
      t.true(printed.includes('?[31mX?'))
    }
  })
}
