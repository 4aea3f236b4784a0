'use strict'

// Runs Node on a pseudo-terminal, made by script of util-linux.

const { execFile, execFileSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { stripVTControlCharacters } = require('node:util')
const { quoteForShell, register, root } = require('./run')

const COLUMNS = 100
const TIMEOUT_MS = 120_000
const MAX_TERMINALS = 4 // maximum at once: ava starts all tests of a file together

let running = 0
/** starts the next waiting run @type {Array<(value?: unknown) => void>} */
const waiting = []

/** Variables that would select colours or links for the program. */
const ownVariables = /^(LONGSTACK|NODE_|AVA_|FORCE_|NO_COLOR|CI$|TERM|COLORTERM|VTE_VERSION|WT_SESSION|KITTY)/
const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !ownVariables.test(name)))
const engine = process.env.ENGINE ? { LONGSTACK_CAPTURE: process.env.ENGINE } : {}

/** @returns {string | undefined} reason why there is no terminal here */
function noTerminal () {
  try {
    execFileSync('script', ['-qec', 'true', '/dev/null'], { stdio: ['ignore', 'ignore', 'ignore'] })
    return undefined
  } catch {
    return 'not tried: there is no script of util-linux'
  }
}

/**
 * @typedef {object} Options
 * @property {boolean} [preload] default true
 * @property {string[]} [args] of node, before the program
 * @property {string} [redirect] for example `2>/dev/null`
 * @property {'js' | 'mjs' | 'cjs'} [type]
 * @property {Record<string, string>} [env]
 * @property {string} [file] a program on disk, instead of a source
 * @property {string[]} [after] arguments of the program
 */

/**
 * Runs a program on a terminal of 100 columns.
 * @param {string} source
 * @param {Options} [options]
 * @returns {Promise<{ text: string, plain: string, code: number, folder: string }>} text: the terminal's
 *   input, with \n as line ends; plain: without colours and links; folder: of the program, already removed
 */
async function onTerminal (source, options) {
  if (running === MAX_TERMINALS) await new Promise((resolve) => { waiting.push(resolve) })
  else running++
  try {
    return await play(source, options)
  } finally {
    const next = waiting.shift()
    if (next === undefined) running--
    else next()
  }
}

/** @param {string} source @param {Options} [options] @returns {ReturnType<typeof onTerminal>} */
async function play (source, { preload = true, args = [], redirect = '', type = 'js', env = {}, file, after = [] } = {}) {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-tty-')))
  try {
    const program = file ?? path.join(folder, `program.${type}`)
    if (file === undefined) fs.writeFileSync(program, source)
    const words = [process.execPath, ...(preload ? ['-r', register] : []), ...args, program, ...after]
    const command = `stty cols ${COLUMNS}; ${words.map(quoteForShell).join(' ')} ${redirect}`
    const options = { env: { ...inherited, ...engine, TERM: 'xterm-256color', ...env }, cwd: root, timeout: TIMEOUT_MS }
    return await new Promise((resolve) => {
      const child = execFile('script', ['-qec', command, '/dev/null'], options, (error, stdout) => {
        const text = stdout.replaceAll('\r\n', '\n')
        const code = error === null ? 0 : Number(error.code)
        resolve({ text, plain: stripVTControlCharacters(text), code, folder })
      })
      child.stdin?.end()
    })
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

module.exports = { COLUMNS, noTerminal, onTerminal }
