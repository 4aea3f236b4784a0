'use strict'

// One program, run bare and under longstack: what differs may only be appended hops.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { node, register } = require('./run')

const separator = /^\s*(?:\| )*── .+ ──$/

/**
 * Takes appended hops out of any text in which stacks are printed, also indented ones of a cause.
 * @param {string} text
 */
function withoutHops (text) {
  /** @type {string[]} */
  const kept = []
  let inHop = false
  for (const line of text.split('\n')) {
    if (separator.test(line)) {
      inHop = true
      continue
    }
    const frame = inHop ? /^\s+at (?:.*:\d+:\d+\)?|.*<anonymous>\)?)(.*)$/.exec(line) : null
    if (frame === null) {
      inHop = false
      kept.push(line)
    } else if (frame[1] !== '') { // the text goes on behind a stack: " {", ",", "]" or another one
      inHop = false
      kept[kept.length - 1] += frame[1]
    }
  }
  return kept.join('\n')
}

/**
 * @param {string} source
 * @param {object} [options]
 * @param {'cjs' | 'mjs'} [options.type]
 * @param {string[]} [options.args] of node
 * @param {Record<string, string>} [options.env]
 * @returns {Promise<{ bare: import('./run').Result, traced: import('./run').Result, hops: number }>}
 *   traced: with its hops taken out; hops: how many those were
 */
async function both (source, { type = 'cjs', args = [], env = {} } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-both-'))
  try {
    const file = path.join(folder, `program.${type}`)
    fs.writeFileSync(file, source)
    const [bare, traced] = await Promise.all([node([...args, file], { env }), node(['-r', register, ...args, file], { env })])
    const hops = `${traced.stdout}${traced.stderr}`.split('\n').filter((line) => separator.test(line)).length
    return { bare, traced: { ...traced, stdout: withoutHops(traced.stdout), stderr: withoutHops(traced.stderr) }, hops }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {Parameters<typeof both>[1] & { hops?: (count: number) => boolean }} [options]
 */
async function same (t, source, { hops = () => true, ...options } = {}) {
  const result = await both(source, options)
  t.not(result.bare.stdout + result.bare.stderr, '', 'the program says something')
  t.deepEqual(result.traced, result.bare)
  t.true(hops(result.hops), `${result.hops} hops`)
  return result
}

module.exports = { both, same, withoutHops }
