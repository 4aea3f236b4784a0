'use strict'

// Runs a program in a child of its own, as users do: contexts are never counted inside the test runner.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

const root = path.resolve(__dirname, '..', '..')
const register = path.join(root, 'lib', 'register.js')

/** The engine to run all tests over: ENGINE=js npx ava. A test that asks for one itself gets that one. */
const engine = process.env.ENGINE ? { LONGSTACK_CAPTURE: process.env.ENGINE } : {}

/**
 * @typedef {object} Result
 * @property {string} stdout
 * @property {string} stderr
 * @property {number | null} code
 * @property {string | null} signal
 */

/**
 * @param {string[]} args of node
 * @param {object} [options]
 * @param {Record<string, string | undefined>} [options.env] added to a clean environment
 * @param {string} [options.cwd]
 * @param {string} [options.input]
 * @param {number} [options.timeout] ms
 * @returns {Promise<Result>}
 */
function node (args, { env = {}, cwd = root, input = '', timeout = 60_000 } = {}) {
  return new Promise((resolve, reject) => {
    const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(LONGSTACK|NODE_|AVA_|FORCE_COLOR|NO_COLOR)/.test(name)))
    const child = spawn(process.execPath, args, { cwd, env: { ...clean, ...engine, ...env }, timeout, killSignal: 'SIGKILL' })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text) => { stdout += text })
    child.stderr.setEncoding('utf8').on('data', (text) => { stderr += text })
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ stdout, stderr, code, signal }))
    child.stdin.on('error', () => {}).end(input)
  })
}

/**
 * Runs a program text under the preload.
 * @param {string} source
 * @param {object} [options]
 * @param {'cjs' | 'mjs'} [options.type]
 * @param {string[]} [options.args] of node, before the program
 * @param {boolean} [options.preload] default true
 * @param {Record<string, string | undefined>} [options.env]
 * @param {number} [options.timeout]
 */
async function program (source, { type = 'cjs', args = [], preload = true, ...options } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  try {
    const file = path.join(folder, `program.${type}`)
    fs.writeFileSync(file, source)
    return await node([...(preload ? ['-r', register] : []), ...args, file], options)
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Splits a long stack into the error's own part and its hops.
 * @param {string} stack
 * @returns {{ head: string, hops: Array<{ title: string, frames: string }> }}
 */
function split (stack) {
  const [head, ...rest] = stack.split(/^ {2}── /m)
  return { head, hops: rest.map((part) => ({ title: part.split('\n', 1)[0], frames: part.slice(part.indexOf('\n') + 1) })) }
}

/**
 * What is left of a text when the hops are taken out.
 * @param {string} text
 */
function withoutHops (text) {
  const lines = text.split('\n')
  const kept = []
  let inHop = false
  for (const line of lines) {
    if (line.startsWith('  ── ')) inHop = true
    else if (inHop && !line.startsWith('    at ')) inHop = false
    if (!inHop) kept.push(line)
    else if (line.endsWith(' {')) kept[kept.length - 1] += ' {' // inspect goes on with the error's properties
  }
  return kept.join('\n')
}

module.exports = { node, program, split, withoutHops, root, register }
