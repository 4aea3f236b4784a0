'use strict'

// Runs one program bare and under longstack: only appended hops may differ.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { node, register, separator, withoutHops } = require('./run')

/**
 * Runs a program twice.
 * @param {string} source
 * @param {object} [options]
 * @param {'cjs' | 'mjs'} [options.type]
 * @param {string[]} [options.args] of node
 * @param {Record<string, string>} [options.env]
 * @returns {Promise<{ bare: import('./run').Result, traced: import('./run').Result, hops: number }>}
 *   `traced` without its hops, `hops` is their number
 */
async function both (source, { type = 'cjs', args = [], env = {} } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-both-'))
  try {
    const file = path.join(folder, `program.${type}`)
    fs.writeFileSync(file, source)
    const runs = [[], ['-r', register]].map((preload) => node([...preload, ...args, file], { env }))
    const [bare, traced] = await Promise.all(runs)
    const hops = `${traced.stdout}${traced.stderr}`.split('\n').filter((line) => separator.test(line)).length
    const stripped = { stdout: withoutHops(traced.stdout), stderr: withoutHops(traced.stderr) }
    return { bare, traced: { ...traced, ...stripped }, hops }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Asserts that a program with output behaves the same under longstack.
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {Parameters<typeof both>[1] & { hops?: (count: number) => boolean }} [options]
 */
async function same (t, source, { hops = () => true, ...options } = {}) {
  const result = await both(source, options)
  t.not(result.bare.stdout + result.bare.stderr, '', 'the program prints something')
  t.deepEqual(result.traced, result.bare)
  t.true(hops(result.hops), `${result.hops} hops`)
  return result
}

module.exports = { both, same }
