'use strict'

// `code.stacktrace` of a span shows its own place, even for stacks without distinct keys or numbers:
// formatted by the JavaScript engine, or of microtasks if a filter excludes promises.

const test = require('ava')
const path = require('node:path')
const { loadBinding } = require('../../lib/stacks/binding')
const { program } = require('../helpers/run')

const INDEX = path.join(__dirname, '..', '..', 'index.js')
const ROUNDS = 40

/** @param {object} options of trace.enable() @returns {Promise<Record<string, number>>} */
async function play (options) {
  const { stdout, stderr } = await program(`
    const trace = require(${JSON.stringify(INDEX)})
    const counts = { right: 0, wrong: 0, unknown: 0 }
    const flows = { alpha, beta, gamma, delta, outerA, outerB }
    trace.on('span', ({ attributes }) => {
      const text = attributes['code.stacktrace'] ?? ''
      const named = Object.keys(flows).filter((name) => text.includes(name + ' ('))
      counts[named.length === 0 ? 'unknown' : String(named) === attributes.who ? 'right' : 'wrong']++
    })
    trace.enable(${JSON.stringify(options)})
    const later = () => new Promise((resolve) => setTimeout(resolve, 1))
    async function alpha () { await later(); await trace.span('query', { who: 'alpha' }, later) }
    async function beta () { await later(); await trace.span('query', { who: 'beta' }, later) }
    async function gamma () { await null; await query('gamma') }
    async function delta () { await later(); await query('delta') }
    async function outerA () { await null; await helper('outerA') }
    async function outerB () { await null; await helper('outerB') }
    async function helper (who) { await later(); await query(who) }
    function query (who) { return trace.span('query', { who }, later) }
    async function main () {
      for (let i = 0; i < ${ROUNDS}; i++) await Promise.all(Object.values(flows).map((flow) => flow()))
      setTimeout(() => { console.log(JSON.stringify(counts)); process.exit() }, 20)
    }
    main()`)
  return stderr === '' ? JSON.parse(stdout) : { stderr }
}

for (const capture of ['native', 'js']) {
  const engineTest = capture === 'js' || loadBinding().failure === undefined ? test : test.skip
  for (const [name, options] of Object.entries({ 'all types': {}, 'promises left out': { filter: ['*', '-PROMISE'] } })) {
    engineTest(`${capture} engine, ${name}: no span has another place's stack`, async (t) => {
      t.deepEqual(await play({ capture, ...options }), { right: 6 * ROUNDS, wrong: 0, unknown: 0 })
    })
  }
}
