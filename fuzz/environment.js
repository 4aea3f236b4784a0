'use strict'

// LONGSTACK_* with any text: the program's output is unchanged, and longstack prints at most one line per
// variable, without control characters.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { rules } = require('../lib/options')
const { expectHarmless } = require('./helpers/expectations')
const { check, fc } = require('./helpers/property')

const BATCH = 5
const TIMEOUT_MS = 60_000
const register = path.join(__dirname, '..', 'lib', 'register.js')
const PROGRAM = `setTimeout(() => Promise.reject(new Error("x"))
  .catch((error) => console.log(error.stack.split("\\n")[0])), 1)`

/** Texts that an environment can hold: no NUL, no lone surrogate. */
const hostileText = fc.oneof(
  fc.constantFrom('__proto__', 'constructor', '\x1b[2J\u009b31m', '\u202eTCP', 'a\nb\r\nc', '(a+)+$', '/(/',
    '((((', '[', '*',
    '-', '--', ',', 'TCP,,-', 'x'.repeat(50_000), '1e3', '0x10', '9'.repeat(400), '-0', 'NaN', ' ', '\u0660'),
  fc.string(), fc.string({ unit: 'binary' }))
  .map((text) => text.replaceAll('\0', '').toWellFormed())

/** Values next to the right ones. @type {Record<string, string[]>} */
const near = {
  LONGSTACK: ['TCP', '*,-PROMISE', 'tcp', 'type:', '-'],
  LONGSTACK_BLOCKED: ['60000', '0', '-1', '3600001'],
  LONGSTACK_CAPTURE: ['js', 'native', 'auto', 'JS'],
  LONGSTACK_SIGNAL: ['SIGUSR2', 'SIGKILL', 'SIGUSR1', 'toString'],
  LONGSTACK_SPANS: ['spans.ndjson', '.', '/', '/dev/full', 'http://127.0.0.1:9', 'http://[', 'a,b', '-',
    'otlp:', 'file:///x', '/proc/none/x'],
  LONGSTACK_BUDGET: ['1048576', '1', '99999999999999999999'],
  LONGSTACK_HIDE: ['node_modules', '/x/', '/[/']
}

function variables () {
  const known = fc.constantFrom(...Object.values(rules).map(({ variable }) => variable))
  const name = fc.oneof({ arbitrary: known, weight: 6 },
    fc.constantFrom('LONGSTACK_', 'LONGSTACK_FRAME', 'LONGSTACK___proto__', 'LONGSTACK_toString',
      'LONGSTACK_LEAKS'),
    fc.string().map((text) => `LONGSTACK_${text.replaceAll(/[\0=]/g, '').toWellFormed()}`))
  const variable = name.chain((key) => {
    const texts = near[key] === undefined ? hostileText : fc.oneof(fc.constantFrom(...near[key]), hostileText)
    // a number here is a threshold
    const isShort = (/** @type {string} */ text) =>
      key === 'LONGSTACK_BLOCKED' && /^\s*\d{1,4}\s*$/.test(text)
    const value = texts.map((text) => isShort(text) ? '60000' : text)
    return fc.tuple(fc.constant(key), value)
  })
  return fc.array(variable, { minLength: 1, maxLength: 5 })
}

/** @param {Array<[string, string]>} list @param {string} cwd @returns {Promise<string>} stderr */
function play (list, cwd) {
  const env = { PATH: process.env.PATH, ...Object.fromEntries(list) }
  const child = spawn(process.execPath, ['-r', register, '-e', PROGRAM], { cwd, env, timeout: TIMEOUT_MS })
  const output = { stdout: '', stderr: '' }
  for (const name of /** @type {const} */ (['stdout', 'stderr'])) {
    child[name].setEncoding('utf8').on('data', (text) => { output[name] += text })
  }
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      const { stdout, stderr } = output
      const lines = stderr.split('\n').slice(0, -1)
      const isQuiet = lines.length <= Object.keys(env).length &&
        lines.every((line) => line.startsWith('longstack: '))
      const isRight = code === 0 && stdout === 'Error: x\n' && isQuiet
      if (isRight) return resolve(stderr)
      reject(new Error(`ended with ${signal ?? code}\n${JSON.stringify(output).slice(0, 3000)}`))
    })
  })
}

/** @type {import('./helpers/targets').Target} */
module.exports = {
  name: 'environment',
  async run (settings) {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-fuzz-'))
    try {
      return await check(fc.asyncProperty(variables(), async (list) => {
        expectHarmless('stderr', await play(list, directory))
      }), settings, BATCH)
    } finally {
      fs.rmSync(directory, { recursive: true, force: true })
    }
  }
}
