'use strict'

// Runs a program that calls trace.why and trace.handles, and returns the reports, as data and as text.

const path = require('node:path')
const { program, root } = require('./run')

/** Beginning of every program. Reports are printed as JSON, which proves that each can be serialized. */
const prelude = `
const trace = require(${JSON.stringify(root)})
const fs = require('node:fs'), net = require('node:net'), http = require('node:http')
const { once } = require('node:events')
const fixtures = ${JSON.stringify(path.join(root, 'test', 'fixtures', 'handles'))}
const say = (name, value) => fs.writeSync(1, JSON.stringify({ name, ...value }) + '\\n')
const ask = (name, target) => { const why = trace.why(target); say(name, { why, text: String(why) }) }
const list = (name, filter) => { const all = trace.handles(filter); say(name, { all, text: all.join('\\n') }) }
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
async function until (holds) { while (!holds()) await wait(1) }
`

/**
 * @param {string} source
 * @param {Parameters<typeof program>[1]} [options]
 */
async function reports (source, options) {
  const { stdout, stderr, code } = await program(`${prelude}\n${source}`, options)
  /** @type {Record<string, any>} */
  const told = {}
  for (const line of stdout.split('\n').filter(Boolean)) {
    const { name, ...value } = JSON.parse(line)
    told[name] = value
  }
  return { told, stderr, code }
}

/**
 * Returns the functions of a chain, newest first.
 * @param {Array<{ frames: Array<{ functionName?: string }> }>} chain
 */
const functions = (chain) => chain.flatMap((hop) => hop.frames.map((frame) => String(frame.functionName)))

module.exports = { reports, functions }
