'use strict'

// Addons that use native hooks, compiled the way users do, and programs that load them.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { build } = require('../../examples/native-counter/build')
const { loadBinding } = require('../../lib/stacks/binding')
const { program, root } = require('./run')

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-hooks-'))
test.after.always(() => fs.rmSync(folder, { recursive: true, force: true }))

/** Returns the reason why nothing can be tested here. */
function obstacle () {
  const why = loadBinding().failure?.code
  if (why !== undefined) return `no native part: ${why}`
  try {
    build(path.join(root, 'examples', 'native-counter', 'counter.c'), path.join(folder, 'counter.node'))
    for (const name of ['torture', 'plain']) build(path.join(root, 'test', 'fixtures', 'native-hooks', `${name}.c`), path.join(folder, `${name}.node`))
  } catch (error) {
    return `nothing was compiled: ${error.message}`
  }
}

const why = obstacle()
const able = why === undefined ? test : () => {}
if (why !== undefined) {
  test('without a compiler or a binary, addons are not tested', (t) => {
    t.log(why)
    t.falsy(process.env.CI || process.env.NODES === 'all', why)
  })
}

/** Actions of torture.c, by number. */
const tortures = ['removeSelf', 'removeEarlier', 'removeLater', 'addOne', 'addThousand', 'addWithoutEnd', 'twice', 'keep', 'untimed', 'timed',
  'drop', 'dropOther', 'nothing', 'small', 'flags', 'plain', 'count']

/** @param {boolean} addons torture first, so that it ends last */
const prelude = (addons) => `
  'use strict'
  const { AsyncResource } = require('node:async_hooks')
  const { Worker, isMainThread, workerData } = require('node:worker_threads')
  ${addons ? `const torture = require(${JSON.stringify(path.join(folder, 'torture.node'))})` : ''}
  ${addons ? `const counter = require(${JSON.stringify(path.join(folder, 'counter.node'))})` : ''}
  const trace = require(${JSON.stringify(root)})
  const tortures = ${JSON.stringify(tortures)}
  const plain = ${JSON.stringify(path.join(folder, 'plain.node'))}
  const run = (name, text = '') => torture.run(tortures.indexOf(name), trace.nativeHooks().api, text)
  const make = (type = 'MINE', count = 1) => { for (let i = 0; i < count; i++) new AsyncResource(type) }
  const tell = (value) => console.log(JSON.stringify(value, (key, one) => typeof one === 'bigint' ? Number(one) : one))
  if (!trace.enabled) trace.enable()
`

/**
 * Runs a program; returns the lines that it reports.
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {object} [options] of program()
 * @param {boolean} [options.addons] whether to load them
 * @returns {Promise<any[]>}
 */
async function answers (t, source, { addons = true, ...options } = {}) {
  const { stdout, stderr, code, signal } = await program(prelude(addons) + source, options)
  t.is(stderr, '')
  t.is(signal ?? code, 0)
  return stdout.trim().split('\n').map((line) => JSON.parse(line))
}

module.exports = { able, answers, folder }
