'use strict'

// longstack profile: records a profile of a program that it runs, or of a running process, and prints or
// writes it.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { DEFAULTS } = require('./commands')
const { quote, UsageError } = require('./flags')
const { asJson, colours, print, printError, width } = require('./terminal')

/** @typedef {import('../profile/profile').Profile} Profile */

const MAX_SECONDS = 1800
const ANSWER_MS = 15_000 // for a process to answer, beyond what it is asked to record
/** A busy process is what one profiles: it has longer than others. */
const ASKING = { children: false, workers: false, busyMs: ANSWER_MS }
const VALUES = ['ran', 'waited', 'cpu']

/** @type {import('./commands').Main} operands: a PID, or a script and its arguments */
async function main (values, operands) {
  check(values)
  return /^\d+$/.test(operands[0])
    ? await profileProcess(Number(operands[0]), values)
    : await profileProgram(operands, values)
}

/** @param {Record<string, any>} values @throws {UsageError} */
function check ({ seconds, value, collapsed, html, pprof }) {
  if (seconds !== undefined && !(/^\d*\.?\d+$/.test(seconds) && seconds > 0 && seconds <= MAX_SECONDS)) {
    const range = `a number above 0, at most ${MAX_SECONDS}`
    throw new UsageError(`--seconds must be ${range}. Received ${quote(seconds)}.`)
  }
  if (value !== undefined && !VALUES.includes(value)) {
    throw new UsageError(`--value must be ran, waited or cpu. Received ${quote(value)}.`)
  }
  if (value !== undefined && collapsed === undefined) throw new UsageError('--value needs --collapsed.')
  const outputs = [html, pprof, collapsed].filter((file) => file !== undefined)
  const files = outputs.map((file) => path.resolve(file))
  if (new Set(files).size < files.length) throw new UsageError('Two outputs name the same file.')
}

/**
 * Runs a program, and reports on it.
 * @param {string[]} operands script and its arguments
 * @param {Record<string, any>} values
 */
async function profileProgram (operands, values) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-profile-'))
  const file = path.join(directory, 'profile.json')
  let isReported = false

  async function report () {
    if (isReported || !fs.existsSync(file)) return
    isReported = true
    const profile = read(fs.readFileSync(file, 'utf8'))
    if (profile === undefined) printError('longstack: the program wrote something that is no profile.')
    else await output(profile, values, 2)
  }

  const watcher = fs.watch(directory, () => { report().catch(fail) }).on('error', () => {})
  const removeDirectory = () => {
    try {
      for (const made of [file, `${file}.part`]) fs.rmSync(made, { force: true })
      fs.rmdirSync(directory)
    } catch {} // it is gone, or something else is in it
  }
  const { profileEnvironment } = require('../profile/preload')
  const seconds = values.seconds === undefined ? undefined : Number(values.seconds)
  const request = { file, seconds, samples: !values['no-samples'] }
  const preloads = ['-r', require.resolve('../register'), '-r', require.resolve('../profile/preload')]
  const separator = operands[0].startsWith('-') ? ['--'] : []
  const { runChild } = require('./replace-process')
  try {
    const env = { ...process.env, ...profileEnvironment(request) }
    return await runChild([...preloads, ...separator, ...operands], env, async () => {
      watcher.close()
      await report()
      if (!isReported) printError('longstack: the program ended without a chance to write its profile.')
      removeDirectory()
    })
  } finally {
    watcher.close()
    removeDirectory()
  }
}

/** @param {unknown} json @returns {Profile | undefined} */
function read (json) {
  return require('../../report/read/profile').parseProfile(json)
}

/** @param {Error} error of writing an output */
function fail (error) {
  printError(`longstack: ${error.message}`)
}

/** Profiles a running process. @param {number} pid @param {Record<string, any>} values */
async function profileProcess (pid, values) {
  const { askUnblocked } = require('../ask/processes')
  const { RefusedError } = require('../ask/system')
  const seconds = Number(values.seconds ?? DEFAULTS.profileSeconds)
  const asked = await askUnblocked({ pids: [pid], socket: undefined }, ASKING)
  /** @type {Profile | undefined} */
  let profile
  try {
    const [thread] = asked.processes[0].threads
    if (thread.facts.tracing === 'off') await thread.call('attach', {})
    const finish = () => { thread.call('finishProfile').catch(() => {}) }
    process.once('SIGINT', finish)
    const options = { seconds, samples: !values['no-samples'] }
    const value = await thread.call('profile', options, seconds * 1000 + ANSWER_MS)
    process.off('SIGINT', finish)
    profile = read(JSON.stringify(value))
  } finally {
    asked.close()
  }
  if (profile === undefined) throw new RefusedError(`Process ${pid} answered with no profile.`)
  await output(profile, values, 1)
}

/**
 * Prints or writes a profile.
 * @param {Profile} profile
 * @param {Record<string, any>} values
 * @param {1 | 2} fd where text goes
 */
async function output (profile, { html, pprof, collapsed: stacks, value, json }, fd) {
  if (html !== undefined) {
    const { createProfilePage } = require('../../report/render/page')
    write(html, createProfilePage(profile))
  }
  const formats = require('../../report/render/profile-formats')
  if (pprof !== undefined) write(pprof, formats.pprof(profile))
  if (stacks !== undefined) write(stacks, formats.collapsed(profile, value))
  if (json) return await print(asJson(profile))
  if ([html, pprof, stacks].some((file) => file !== undefined)) return
  const { profileText } = require('../../report/render/profile-text')
  const text = profileText(profile, { colours: colours(fd), width: width() })
  if (fd === 1) await print(text)
  else printError(`\n${text.trimEnd()}`)
}

/** @param {string} file @param {string | Buffer} content */
function write (file, content) {
  fs.writeFileSync(file, content, { mode: 0o600 }) // one that is there keeps its mode
  printError(`Wrote ${file} (${(content.length / 1e6).toFixed(1)} MB).`)
}

module.exports = { main }
