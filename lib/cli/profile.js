'use strict'

// longstack profile: records a profile of a program that it runs, or of a running process, and prints or
// writes it.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { describe, parse, quote, UsageError } = require('./flags')
const { asJson, colours, print, printError, printHelp, width } = require('./terminal')

/** @typedef {import('../../report/render/profile-stacks').Profile} Profile */

const MAX_SECONDS = 1800
const DEFAULT_SECONDS = 5 // of a running process
const VALUES = ['ran', 'waited', 'cpu']

/** @type {import('./flags').Flags} */
const flags = {
  seconds: {
    type: 'string',
    value: 'N',
    description: 'how long, at most 1800; default: until the program ends, or 5 for a PID'
  },
  html: { type: 'string', value: 'FILE', description: 'write a page for the browser with a flame graph' },
  pprof: { type: 'string', value: 'FILE', description: 'write the format of pprof, for go tool pprof' },
  collapsed: { type: 'string', value: 'FILE', description: 'write a line per stack, for speedscope' },
  value: { type: 'string', value: 'WHAT', description: 'of collapsed stacks: ran (default), waited or cpu' },
  json: { type: 'boolean', description: 'print the profile as one JSON object' },
  'no-samples': { type: 'boolean', description: "without CPU samples of V8's profiler" }
}

const help = `Prints where async time of a process goes: per chain of callbacks how long it ran and how long
it waited, with CPU samples under the chain that ran.

  longstack profile [flags] app.js [args]    from its start until it ends, or Ctrl-C
  longstack profile [flags] PID              a running process of this machine

Flags stand before the script; what follows are arguments of the program. Its output stays what it is: the
text goes to standard error when the program has ended or the time is over.

${describe(flags)}

Exit code: the program's; 1 if a process cannot be asked, 2 for wrong usage.
`

/** @param {string[]} args */
async function main (args) {
  const { values, operands } = parse(args, flags, true)
  if (values.help) return await printHelp(help)
  if (operands.length === 0) throw new UsageError('Missing script or process id.')
  if (!/^\d+$/.test(operands[0])) {
    check(values)
    return await profileProgram(operands, values)
  }
  const parsed = parse(args, flags) // flags may follow a PID
  if (parsed.values.help) return await printHelp(help)
  check(parsed.values)
  if (parsed.operands.length > 1) {
    throw new UsageError(`One process at a time. Received ${quote(parsed.operands[1])}.`)
  }
  return await profileProcess(Number(operands[0]), parsed.values)
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
  const { profileEnvironment } = require('../profile-preload')
  const seconds = values.seconds === undefined ? undefined : Number(values.seconds)
  const request = { file, seconds, samples: !values['no-samples'] }
  const preloads = ['-r', require.resolve('../register'), '-r', require.resolve('../profile-preload')]
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

/**
 * Profiles a running process.
 * @param {number} pid
 * @param {Record<string, any>} values
 * @returns {Promise<number | undefined>} the exit code
 */
async function profileProcess (pid, values) {
  const { inspectProcess, RefusedError } = require('./inspect-process')
  const seconds = Number(values.seconds ?? DEFAULT_SECONDS)
  /** @type {Awaited<ReturnType<typeof inspectProcess>> | undefined} */
  let target
  try {
    target = await inspectProcess(pid)
    const finish = () => { target?.call('finishProfile').catch(() => {}) }
    process.once('SIGINT', finish)
    const options = { seconds, samples: !values['no-samples'] }
    const profile = read(await target.call('profile', options, seconds * 1000))
    if (profile === undefined) throw new RefusedError(`Process ${pid} answered with no profile.`)
    process.off('SIGINT', finish)
    await target.close()
    await output(profile, values, 1)
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    printError(`longstack: ${error.message}`)
    await target?.close()
    return 1
  }
}

/**
 * Prints or writes a profile.
 * @param {Profile} profile
 * @param {Record<string, any>} values
 * @param {1 | 2} fd where text goes
 */
async function output (profile, { html, pprof, collapsed: stacks, value, json }, fd) {
  if (html !== undefined) {
    const { createProfilePage } = require('../../report/render/page/profile')
    write(html, createProfilePage(profile))
  }
  if (pprof !== undefined) write(pprof, require('../../report/render/pprof').pprof(profile))
  if (stacks !== undefined) {
    const { collapsed } = require('../../report/render/collapsed')
    write(stacks, collapsed(profile, value))
  }
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

module.exports = { help, main }
