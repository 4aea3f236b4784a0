'use strict'

// longstack profile: profiles a program that it starts, or a running process, and prints or writes the
// profile.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { askUnblocked } = require('../ask/processes')
const { RefusedError } = require('../ask/system')
const { profileEnvironment } = require('../profile/preload')
const { DEFAULTS } = require('./commands')
const { number, quote, UsageError, wrongValue } = require('./flags')
const { runChild } = require('./run')
const { asJson, colours, print, printError, width, write } = require('./terminal')

/** @typedef {import('../profile/profile').Profile} Profile */

const MAX_SECONDS = 1800
const ANSWER_MS = 15_000 // response timeout, beyond the recorded time
/** A process is profiled because it is busy, so it gets a longer timeout than others. */
const ASKING = { children: false, workers: false, busyMs: ANSWER_MS }
const VALUES = ['ran', 'waited', 'cpu']

/** @type {import('./commands').Main} operands: a PID, or a script and its arguments */
async function main (values, operands) {
  check(values)
  if (/:\d+$/.test(operands[0]) && !fs.existsSync(operands[0])) {
    throw new UsageError(`longstack profile takes a script or a process id. Received ${quote(operands[0])}.`)
  }
  const { seconds, 'no-samples': noSamples = false } = values
  const options = { seconds: seconds === undefined ? undefined : Number(seconds), samples: !noSamples }
  return /^\d+$/.test(operands[0])
    ? await profileProcess(Number(operands[0]), options, values)
    : await profileProgram(operands, options, values)
}

/** @param {Record<string, any>} values @throws {UsageError} */
function check ({ seconds, value, collapsed, html, pprof }) {
  if (seconds !== undefined) {
    number('seconds', seconds, Number.MIN_VALUE, MAX_SECONDS, `a number above 0, at most ${MAX_SECONDS}`)
  }
  if (value !== undefined && !VALUES.includes(value)) throw wrongValue('value', 'ran, waited or cpu', value)
  if (value !== undefined && collapsed === undefined) throw new UsageError('--value needs --collapsed.')
  const files = [html, pprof, collapsed].flatMap((file) => file === undefined ? [] : path.resolve(file))
  if (new Set(files).size < files.length) throw new UsageError('Two outputs name the same file.')
}

/**
 * Runs a program and reports its profile.
 * @param {string[]} operands script and its arguments
 * @param {{ seconds: number | undefined, samples: boolean }} options
 * @param {Record<string, any>} values
 */
async function profileProgram (operands, options, values) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-profile-'))
  const file = path.join(directory, 'profile.json')
  let isReported = false

  async function report () {
    if (isReported || !fs.existsSync(file)) return
    isReported = true
    await output(fs.readFileSync(file, 'utf8'), values, 2)
  }

  const fail = (/** @type {Error} */ error) => printError(`longstack: ${error.message}`)
  const watcher = fs.watch(directory, () => { report().catch(fail) }).on('error', () => {})
  const end = () => {
    watcher.close()
    try {
      for (const made of [file, `${file}.part`]) fs.rmSync(made, { force: true })
      fs.rmdirSync(directory)
    } catch {} // gone already, or not empty
  }
  const preloads = ['-r', require.resolve('../register'), '-r', require.resolve('../profile/preload')]
  const separator = operands[0].startsWith('-') ? ['--'] : []
  try {
    const env = { ...process.env, ...profileEnvironment({ file, ...options }) }
    return await runChild([...preloads, ...separator, ...operands], env, async () => {
      await report()
      if (!isReported) printError('longstack: the program ended without a chance to write its profile.')
      end() // the signal that ended the program may end this process
    })
  } finally {
    end()
  }
}

/**
 * Profiles a running process.
 * @param {number} pid
 * @param {{ seconds: number | undefined, samples: boolean }} options
 * @param {Record<string, any>} values
 */
async function profileProcess (pid, { seconds = DEFAULTS.profileSeconds, samples }, values) {
  const asked = await askUnblocked({ pids: [pid] }, ASKING)
  /** @type {unknown} */
  let profile
  try {
    const [thread] = asked.processes[0].threads
    if (thread.facts.tracing === 'off') await thread.call('attach', {})
    const finish = () => { thread.call('finishProfile').catch(() => {}) }
    process.once('SIGINT', finish)
    profile = await thread.call('profile', { seconds, samples }, seconds * 1000 + ANSWER_MS)
    process.off('SIGINT', finish)
  } finally {
    asked.close()
  }
  await output(JSON.stringify(profile), values, 1)
}

/**
 * Prints or writes a profile.
 * @param {string} text written by another process
 * @param {Record<string, any>} values
 * @param {1 | 2} fd descriptor for text output
 */
async function output (text, { html, pprof, collapsed: stacks, value, json }, fd) {
  const profile = require('../../report/read/profile').parseProfile(text)
  if (profile === undefined) throw new RefusedError('The file it wrote is not a profile.')
  if (html !== undefined) {
    await write(html, require('../../report/render/page').createProfilePage(profile))
  }
  const formats = require('../../report/render/profile')
  if (pprof !== undefined) await write(pprof, formats.pprof(profile))
  if (stacks !== undefined) await write(stacks, formats.collapsed(profile, value))
  if (json) return await print(asJson(profile))
  if (html !== undefined || pprof !== undefined || stacks !== undefined) return
  const lines = formats.profileText(profile, { colours: colours(fd), width: width() })
  if (fd === 1) await print(lines)
  else printError(`\n${lines.trimEnd()}`)
}

module.exports = { main }
