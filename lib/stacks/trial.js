'use strict'

// Trial of the addon. On an untested platform or V8, a separate process loads and uses the addon first
// (trial-run.js), so that a crash does not hit the program. Loaded only there.
//
// Results are kept in the user's cache, one file per combination of factors (keyOf); a crash stays valid for
// its combination. Missing binaries are kept too, so that missing-binary.js reports each once. Results that
// a busy machine may have caused expire after ten minutes.

const { execPath, permission } = /** @type {any} */ (process)
const { readFileSync, renameSync, writeFileSync } = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { attempt, insidePrivate, makeDirectory, stateOf } = require('../files')
const { isMainThread } = require('../passing/threads')
const { ownManifest, target } = require('../platform')

const SAMPLE = 16 // one build differs from another in many places
const MAX_MS = 1500 // extra time that one start may take
const RETRY_MS = 10 * 60 * 1000
const KEY = 'longstack.trial' // of the environment data that workers get
const PROGRAM = path.join(__dirname, 'trial-run.js')
const MARK = '_LONGSTACK_TRIAL' // environment variable of the trial process

// Spawning a program that is its own executable (SEA, Electron) would start the program a second time.
const NODE = /^node(js)?[-.\d]*$/

// The program's variables for preloads, coverage and reports would affect the trial, or be affected by it.
const NOT_INHERITED = /^(?:NODE_|_?LONGSTACK)/

/** V8 options that change its code or stack. */
const V8_OPTIONS = new RegExp('^--(?:no-?)?(?:(?:always-)?(?:sparkplug|opt|turbofan)|maglev|turbolev|' +
  'jitless|lite-mode|interpreted-frames-native-stack|minor-ms|single-generation|stack-size|stress-.*)(?:=|$)')

const TRIALS = ['SELF_TEST_PASSED', 'TRIAL_CRASHED', 'TRIAL_HUNG', 'TRIAL_FAILED', 'TRIAL_IMPOSSIBLE']
/** Reasons without anything to try, kept so that each is reported once. */
const MISSING = ['NO_BINARY', 'NOT_INSTALLED', 'OTHER_VERSION', 'DAMAGED_BINARY', 'LOAD_FAILED']
const CRASHES = ['SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGABRT', 'SIGTRAP', 'SIGFPE', 'SIGSYS']
const INTERRUPTS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] // meant for the program and its process group

/**
 * @typedef {import('../reasons').EngineReason} Reason SELF_TEST_PASSED: the addon may be loaded
 * @typedef {{ key: string, at: number, reason: Reason }} Result key: see keyOf; at: ms of Unix time
 */

/**
 * Returns the result of a trial, earlier or new.
 * @param {string} target
 * @param {string} file the addon
 * @returns {Reason}
 */
function tryAddon (target, file) {
  const key = keyOf(target, file)
  const known = readResult(key) ?? inheritedResult(key)
  if (known !== undefined) return known.reason
  const reason = obstacle() ?? run()
  if (reason.code === 'TRIAL_IMPOSSIBLE') return reason
  const other = isLasting(reason) ? undefined : readResult(key) // another process was faster
  if (other === undefined) keep({ key, at: Date.now(), reason })
  return other?.reason ?? reason
}

/**
 * Returns whether this is the first process on this machine with a reason, and keeps it for later ones.
 * @param {Reason} reason why there is no binary
 */
function isFirst (reason) {
  const key = ['missing', target(), process.version, ownManifest().version, reason.code].join(' ')
  if ((readResult(key) ?? inheritedResult(key)) !== undefined) return false
  keep({ key, at: Date.now(), reason })
  return true
}

/**
 * Returns the file with the result of a trial.
 * @param {string} target
 * @param {string} file the addon
 * @returns {string | undefined} undefined if there is none
 */
function resultFile (target, file) {
  const key = keyOf(target, file)
  const directory = cacheDirectories().find((directory) => readFrom(directory, key) !== undefined)
  return directory === undefined ? undefined : path.join(directory, nameOf(key))
}

/** @returns {Reason | undefined} why nothing can be tried */
function obstacle () {
  if (process.env[MARK] !== undefined) return impossible('this is a trial')
  if (permission?.has('child') === false) return impossible('--permission forbids child processes')
  return NODE.test(path.basename(execPath)) ? undefined : impossible(`${execPath} is not called node`)
}

/** @param {string} detail @returns {Reason} */
const impossible = (detail) => ({ code: 'TRIAL_IMPOSSIBLE', detail })

/** @returns {Reason} */
function run () {
  const { spawnSync } = require('node:child_process')
  const { error, signal, status, stdout } = spawnSync(execPath, [...v8Options(), PROGRAM], {
    cwd: path.parse(execPath).root, // the program's directory may be gone
    env: environment(),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: MAX_MS,
    killSignal: 'SIGKILL'
  })
  const { code, message } = /** @type {NodeJS.ErrnoException} */ (error ?? {})
  if (code === 'ETIMEDOUT') return { code: 'TRIAL_HUNG', detail: `${MAX_MS / 1000} s` }
  if (code !== undefined) return impossible(String(message))
  if (signal !== null && INTERRUPTS.includes(signal)) return impossible(`${signal} came`)
  if (signal !== null) return { code: 'TRIAL_CRASHED', detail: signal }
  const failed = /** @type {Reason} */ ({ code: 'TRIAL_FAILED', detail: `exit code ${status}` })
  return status === 0 ? parse(stdout)?.reason ?? failed : failed
}

/** @returns {NodeJS.ProcessEnv} */
function environment () {
  const own = Object.entries(process.env).filter(([name]) => !NOT_INHERITED.test(name))
  // Node passes NODE_V8_COVERAGE on unless the key is present (copyProcessEnvToEnv in lib/child_process.js)
  return { ...Object.fromEntries(own), NODE_V8_COVERAGE: undefined, [MARK]: '1' }
}

/** @returns {string[]} options of this process that may affect the addon */
function v8Options () {
  const words = [...(process.env.NODE_OPTIONS ?? '').split(/\s+/), ...process.execArgv]
  return words.filter((word) => V8_OPTIONS.test(word.replaceAll('_', '-')))
}

/**
 * Lists everything that can change the result of a trial.
 * @param {string} target
 * @param {string} file the addon
 */
function keyOf (target, file) {
  const { version: node, versions: { v8 }, platform } = process
  const addon = hashOf(readFileSync(file), SAMPLE)
  // A macOS release decides what it loads; a result in a Linux image holds on every kernel
  const system = platform === 'linux' ? '' : os.release()
  return [target, system, node, v8, ownManifest().version, addon, ...v8Options()].join(' ')
}

/**
 * Returns a hash (FNV-1a, by words). Node's own hashes are in modules that load too slowly for a start.
 * @param {Buffer} bytes
 * @param {number} sample step between hashed words
 */
function hashOf ({ buffer, byteOffset, length }, sample) {
  const words = new Uint32Array(buffer, byteOffset, length >> 2)
  let hash = length
  for (let i = 0; i < words.length; i += sample) hash = Math.imul(hash ^ words[i], 0x01000193)
  return (hash >>> 0).toString(16)
}

/** @param {string} key */
const nameOf = (key) => `trial-${process.version}-${hashOf(Buffer.from(key, 'utf16le'), 1)}.json`

/**
 * Returns longstack's own directories, the preferred one first. They need not exist.
 * @returns {string[]}
 */
function cacheDirectories () {
  const { XDG_CACHE_HOME = '' } = process.env
  const caches = path.isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : attempt(homeCaches)
  const temporary = path.join(os.tmpdir(), `longstack-${process.geteuid?.()}`)
  return caches === undefined ? [temporary] : [path.join(caches, 'longstack'), temporary]
}

/** @returns {string | undefined} undefined in another user's home, as with sudo */
function homeCaches () {
  const home = os.homedir()
  if (stateOf(home).uid !== BigInt(process.geteuid?.() ?? -1)) return undefined
  return path.join(home, ...(process.platform === 'darwin' ? ['Library', 'Caches'] : ['.cache']))
}

/** @param {string} key @returns {Result | undefined} */
function readResult (key) {
  return cacheDirectories().map((directory) => readFrom(directory, key)).find(Boolean)
}

/** @param {string} directory @param {string} key @returns {Result | undefined} if still valid */
function readFrom (directory, key) {
  const result = attempt(() => insidePrivate(directory, (inside) => {
    return parse(readFileSync(path.join(inside, nameOf(key)), 'utf8'))
  }))
  return result?.key === key && (isLasting(result.reason) || isRecent(result.at)) ? result : undefined
}

/** Whether a busy machine cannot have caused a result. @param {Reason} reason */
function isLasting ({ code, detail = '' }) {
  if (code === 'TRIAL_CRASHED') return CRASHES.includes(detail)
  return code === 'SELF_TEST_PASSED' || MISSING.includes(code)
}

/** @param {number} at ms of Unix time */
const isRecent = (at) => Math.abs(Date.now() - at) < RETRY_MS

/**
 * @param {string} text output of trial-run.js, or a cached file
 * @returns {Result | undefined} undefined if it is malformed
 */
function parse (text) {
  const result = attempt(() => JSON.parse(text))
  const { code, detail } = result?.reason ?? {}
  const isKnown = TRIALS.includes(code) || MISSING.includes(code)
  return isKnown && (detail === undefined || typeof detail === 'string') ? result : undefined
}

/** @param {Result} result for later processes; if it cannot be kept, for this process's workers */
function keep (result) {
  const isKept = cacheDirectories().some((directory) => attempt(() => write(directory, result)) === true)
  if (!isKept) require('node:worker_threads').setEnvironmentData(KEY, /** @type {any} */ (result))
}

/** @param {string} directory @param {Result} result @returns {true} @throws {Error} */
function write (directory, result) {
  makeDirectory(directory)
  return insidePrivate(directory, (inside) => {
    const name = path.join(inside, nameOf(result.key))
    const unfinished = `${name}.${process.pid}`
    writeFileSync(unfinished, `${JSON.stringify(result)}\n`, { mode: 0o600 })
    renameSync(unfinished, name)
    return true
  })
}

/** @param {string} key @returns {Result | undefined} result of the thread that created this worker */
function inheritedResult (key) {
  if (isMainThread()) return undefined
  const result = /** @type {any} */ (require('node:worker_threads').getEnvironmentData(KEY))
  return result?.key === key ? result : undefined
}

module.exports = { MISSING, isFirst, tryAddon, resultFile }
