'use strict'

// Lifecycle of tracing: enable, disable, and option changes in between.

const { applyBlocked } = require('./blocked/wanted')
const { observeQuietly } = require('./attribution/observed-errors')
const uncaught = require('./attribution/uncaught')
const core = require('./core/index')
const guard = require('./core/guard')
const { on } = require('./core/on')
const { applyOpeners } = require('./handles/openers')
const { changeState } = require('./listeners')
const { providers } = require('./node-objects')
const { joinParentThread } = require('./passing/passing')
const { applyRecord, awaitExit } = require('./record/index')
const channels = require('./requests/channels')
const { settings } = require('./settings')
const { applySpans } = require('./spans/index')
const formatter = require('./stacks/formatter')
const realms = require('./stacks/realms')
const { messageOf, printLine, warn } = require('./warnings')

/**
 * @typedef {import('./options').Options} Options
 * @typedef {typeof tracer} Tracer
 */

/** the option in effect @type {Options['capture'] | undefined} */
let captureOption
/** loaded with the option `listeners` @type {typeof import('./attribution/listener-places') | undefined} */
let listenerPlaces
/** loaded with the option `whyExit` @type {typeof import('./handles/exit-report') | undefined} */
let exitReport
/** signal that prints the open handles @type {string | undefined} */
let signal
/** handles commands @type {InstanceType<typeof import('./ask/server').LiveServer> | undefined} */
let server

function install () {
  settings.enabled = true
  endOldProfile()
  core.start()
  channels.enable()
  uncaught.monitor()
  applyRest()
  warmUp()
}

/** Installs everything or nothing: the stack may be full. */
function installWhole () {
  try {
    install()
  } catch (error) {
    uninstall()
    throw error
  }
}

/** Uninstalls everything, even if one of the parts throws. */
function uninstall () {
  finishProfile()
  settings.enabled = false
  // Listeners first: they wrap functions that channels wrap
  runAll([applyBlocked, applySpans, applyRecord, core.stop, applyListeners, channels.disable,
    uncaught.unmonitor, ...appliers])
}

/** Puts options in force while tracing is on. */
function change () {
  endOldProfile()
  core.change()
  applyRest()
}

/** Ends a profile of another engine: chain numbers are valid in one engine only. */
function endOldProfile () {
  const { capture } = settings.options
  if (capture !== captureOption) finishProfile()
  captureOption = capture
}

function applyRest () {
  for (const apply of [...appliers, applyRecord, applySpans, awaitExit, applyBlocked]) apply()
}

formatter.setReporter({
  observe: observeQuietly,
  report: (error, sites) => guard.run(() => require('./attribution/error-hops').report(error, sites))
})

/** Options that this file applies, and reverts when tracing is off. */
const appliers = [
  applyErrors, applyListeners, applyOpeners, applySignal, applyWhyExit, applySocket
]

const off = {
  errors: false, listeners: false, signal: undefined, whyExit: false, socket: undefined
}
const inForce = () => settings.enabled ? settings.options : off

const isExtending = () => settings.enabled && settings.options.errors === true

on('contextRan', realms.noteRun)
on('formatterReplaced', () => { if (isExtending()) guard.run(formatter.enable) })
on('iteration', (time) => {
  if (isExtending() && !formatter.isInForce()) formatter.enable()
  realms.check(time)
})

/**
 * Adds hops to the stacks of errors (errors: true), or when they are printed (errors: 'print'), or leaves
 * stacks unchanged.
 */
function applyErrors () {
  const { errors } = inForce()
  uncaught.applyPrinting(errors === 'print')
  if (errors !== true) {
    formatter.disable()
    realms.disable()
    return
  }
  realms.enable()
  if (formatter.enable()) return
  warn('FROZEN', 'Error.prepareStackTrace cannot be set here; errors keep their short stack, ' +
    'trace.stack(error) returns the chain.')
}

/**
 * Preloads modules for the program's first error: loading them later would delay callbacks, or happen on a
 * full stack.
 */
function warmUp () {
  if (!settings.options.errors) return
  require('./attribution/error-hops').preload()
  formatter.preload()
}

/** Starts or stops recording where listeners are registered. */
function applyListeners () {
  const { listeners: isOn } = inForce()
  if (isOn) listenerPlaces ??= require('./attribution/listener-places')
  listenerPlaces?.applyListeners(isOn)
}

/** Installs or removes the signal handler that prints open handles. */
function applySignal () {
  const { signal: next } = inForce()
  if (signal === next) return
  if (signal !== undefined) process.off(signal, printOpen)
  signal = next
  if (next !== undefined) guard.run(() => process.on(next, printOpen))
}

function printOpen () {
  guard.run(() => {
    try {
      printLine(require('./handles/why').summary(settings.isSelected))
    } catch (error) { // a report must not end the program
      printLine(`longstack: what is open cannot be printed: ${messageOf(error)}`)
    }
  })
}

/** Starts or stops explaining the end of the process. */
function applyWhyExit () {
  const { whyExit: isOn } = inForce()
  if (isOn) exitReport ??= require('./handles/exit-report')
  exitReport?.applyWhyExit(isOn)
}

/** Opens or closes the socket for commands. */
function applySocket () {
  const { socket } = inForce()
  server = replaced(server, socket, (path) => new (require('./ask/server').LiveServer)(path))
}

/**
 * Returns the server for an option: the present one if it still fits, or a new one.
 * @template {{ option: string, close: () => void }} T
 * @param {T | undefined} present
 * @param {string | undefined} option undefined for none
 * @param {(option: string) => T} create
 */
function replaced (present, option, create) {
  if (present?.option === option) return present
  present?.close()
  return option === undefined ? undefined : guard.run(() => create(option))
}

/** Runs all works; rethrows the first error at the end. @param {Array<() => void>} works */
function runAll (works) {
  /** @type {Array<{ error: unknown }>} */
  const failures = []
  for (const work of works) {
    try {
      work()
    } catch (error) {
      failures.push({ error })
    }
  }
  if (failures.length > 0) throw failures[0].error
}

const selectsAll = () => true

/**
 * Compiles a filter; a filter that selects everything does not load the table of subsystems.
 * @param {readonly string[]} filter
 * @returns {(type: string) => boolean}
 */
function compileFilter (filter) {
  if (filter.length === 1 && filter[0] === '*') return selectsAll
  return require('./subsystems').compile(filter, providers())
}

/** @type {typeof import('./profile/recorder') | undefined} */
let profiles

/**
 * Ends the running profile.
 * @returns {import('./profile/profile').Profile | undefined} undefined if there is none
 */
const finishProfile = () => profiles?.finish()

/** Interface for other copies of the package, see shared.js. */
const tracer = {
  /** directories of the copies of the package, this one's first @type {Set<string>} */
  copies: new Set(),

  settings,
  enabled: () => settings.enabled,

  /** Applies options and turns tracing on. @param {Options} options */
  apply (options) {
    const isSelected = compileFilter(options.filter)
    changeState(() => {
      settings.options = options
      settings.isSelected = isSelected
      if (settings.enabled) return change()
      // An active hook aborts Node while it builds a start-up snapshot.
      if (process.execArgv.some((flag) => flag.startsWith('--build-snapshot'))) {
        settings.enabled = true
        const { startupSnapshot } = require('node:v8')
        startupSnapshot.addDeserializeCallback(() => { if (settings.enabled) changeState(installWhole) })
      } else {
        installWhole()
      }
    })
  },

  disable () {
    changeState(() => { if (settings.enabled) uninstall() })
  },

  hasRecorded: core.hasRecorded,

  /** Deletes recorded data, if tracing is off. */
  forget () {
    changeState(() => { if (!settings.enabled) core.forget() })
  },

  joinParentThread,
  finishProfile,

  /** Records a profile of this thread. @param {{ seconds: number, samples: boolean }} options */
  recordProfile: (options) => (profiles ??= require('./profile/recorder')).record(options),

  /** Formats the errors of another realm as well. @param {ErrorConstructor} error of that realm */
  addRealm: (error) => realms.add(error),

  /** Lists entries of the registry of open handles. */
  openEntries: () => require('./core/registry').list()
}

module.exports = tracer
