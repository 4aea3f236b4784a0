'use strict'

// What a preload adds to the start of a program: node -r X -e 0, by hyperfine where it is installed, else in turn
// with bare.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { cleanEnvironment } = require('./measure')
const { median } = require('./median')

const LONGEST_MS = 10_000

/**
 * @typedef {object} StartUp
 * @property {string} subject
 * @property {number} [ms] median wall time of the whole process
 * @property {number} [over] ms more than bare
 * @property {string} [failed]
 */

/**
 * @param {string[]} command
 * @param {{ env: Record<string, string | undefined>, cwd: string }} options
 */
function once ([command, ...args], options) {
  const began = performance.now()
  const { status, signal, error, stderr } = spawnSync(command, args, { ...options, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe', 'pipe'], timeout: LONGEST_MS })
  const ms = performance.now() - began
  if (status === 0) return { ms }
  if (/** @type {NodeJS.ErrnoException | undefined} */ (error)?.code === 'ETIMEDOUT') return { failed: `does not end within ${LONGEST_MS / 1000} s` }
  return { failed: error?.message ?? stderr.trim().split('\n').find((line) => /Error/.test(line))?.slice(0, 160) ?? `exit code ${status ?? signal}` }
}

/** @param {string} word */
const quoted = (word) => `'${word.replaceAll('\'', '\'\\\'\'')}'`

/**
 * @param {string[]} command
 * @param {{ env: Record<string, string | undefined>, cwd: string }} options
 * @param {number} runs
 * @returns {number[]} ms, nothing where hyperfine did not do it
 */
function hyperfine (command, options, runs) {
  const file = path.join(options.cwd, 'hyperfine.json')
  const { status } = spawnSync('hyperfine', ['-N', '--style', 'none', '--warmup', '2', '--runs', String(runs), '--export-json', file, command.map(quoted).join(' ')],
    { ...options, timeout: 120_000 })
  if (status !== 0) return []
  return JSON.parse(fs.readFileSync(file, 'utf8')).results[0].times.map((/** @type {number} */ seconds) => seconds * 1000)
}

/**
 * @param {string[]} node its command
 * @param {Array<[string, import('./subjects').Subject]>} subjects
 * @param {number} runs
 * @param {boolean} withHyperfine
 * @returns {StartUp[]}
 */
function startUp (node, subjects, runs, withHyperfine) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-bench-'))
  try {
    const prepared = subjects.map(([subject, { args, env }]) => ({
      subject,
      command: [...node, ...args(folder), '-e', '0'],
      options: { cwd: folder, env: { ...cleanEnvironment(), ...env(folder) } },
      /** @type {number[]} */
      times: [],
      /** @type {string | undefined} */
      failed: undefined
    }))
    for (const one of prepared) one.failed = once(one.command, one.options).failed
    const sound = prepared.filter(({ failed }) => failed === undefined)
    if (withHyperfine) for (const one of sound) one.times = hyperfine(one.command, one.options, runs)
    for (let i = 0; i < runs; i++) {
      for (const one of sound) {
        if (one.times.length >= runs) continue
        const { ms, failed } = once(one.command, one.options)
        if (ms === undefined) one.failed = failed
        else one.times.push(ms)
      }
    }
    const bare = median(prepared.find(({ subject }) => subject === 'bare')?.times ?? [NaN])
    return prepared.map(({ subject, times, failed }) => {
      if (failed !== undefined) return { subject, failed }
      const ms = median(times)
      return { subject, ms, over: ms - bare }
    })
  } finally {
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

module.exports = { startUp }
