'use strict'

// Programs that commands query while they run.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { node, register, root } = require('./run')

const main = path.join(root, 'lib', 'cli', 'main.js')
const NODE_VARIABLES = /^(LONGSTACK|NODE_|AVA_|FORCE_COLOR|NO_COLOR)/

/**
 * @typedef {object} Program
 * @property {import('node:child_process').ChildProcess} child
 * @property {number} pid
 * @property {(name: string) => Promise<any>} told the program's next message with this name
 * @property {() => string} stderr
 * @property {(line: string) => void} say writes a line to its standard input
 */

/**
 * Starts each program from its own file, and ends it after the tests of a test file.
 * @param {import('ava').TestFn<any>} test
 */
function livePrograms (test) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-live-'))
  /** @type {Array<import('node:child_process').ChildProcess>} */
  const children = []
  let files = 0
  test.after.always(() => {
    for (const { pid } of children) endGroup(Number(pid))
    fs.rmSync(directory, { recursive: true, force: true })
  })

  /**
   * Starts a program and waits until it prints `ready`: `console.log('ready', JSON)`.
   * @param {string} source
   * @param {{ flags?: string[], traced?: boolean, env?: Record<string, string>, port?: number }} [options]
   *   port: of the inspector; 0: any, so that tests can run in parallel; cluster needs a number
   * @returns {Promise<Program & { ready: any, file: string }>}
   */
  async function start (source, { flags = [], traced = true, env = {}, port = 0 } = {}) {
    const file = path.join(directory, `app${++files}.js`)
    fs.writeFileSync(file, source)
    const inherited = Object.entries(process.env).filter(([name]) => !NODE_VARIABLES.test(name))
    const preload = traced ? ['-r', register] : []
    const child = spawn(process.execPath, [`--inspect-port=${port}`, ...preload, ...flags, file],
      { env: { ...Object.fromEntries(inherited), ...env }, stdio: 'pipe', detached: true })
    children.push(child)
    let stderr = ''
    child.stderr.on('data', (text) => { stderr += text })
    /** @type {Array<{ name: string, value: any }>} */
    const tales = []
    /** @type {Set<() => void>} */
    const waiting = new Set()
    let rest = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      const lines = (rest + text).split('\n')
      rest = /** @type {string} */ (lines.pop())
      for (const line of lines) {
        const [name, ...json] = line.split(' ')
        tales.push({ name, value: json.length === 0 ? undefined : JSON.parse(json.join(' ')) })
      }
      for (const wake of waiting) wake()
    })
    child.on('close', () => { for (const wake of waiting) wake() })

    /** @param {string} name */
    async function told (name) {
      for (;;) {
        const i = tales.findIndex((tale) => tale.name === name)
        if (i >= 0) return tales.splice(i, 1)[0].value
        if (child.exitCode !== null || child.signalCode !== null) throw new Error(`it ended: ${stderr}`)
        await /** @type {Promise<void>} */ (new Promise((resolve) => {
          const wake = () => { waiting.delete(wake); resolve() }
          waiting.add(wake)
        }))
      }
    }

    const ready = await told('ready')
    const say = (/** @type {string} */ line) => { child.stdin.write(`${line}\n`) }
    return { child, pid: Number(child.pid), told, stderr: () => stderr, say, ready, file }
  }

  return { start, directory }
}

/** Ends a process and its children. @param {number} pid */
function endGroup (pid) {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {}
}

/**
 * Runs a command.
 * @param {...(string | number)} args
 */
const longstack = (...args) => node([main, ...args.map(String)])

module.exports = { endGroup, livePrograms, longstack, main }
