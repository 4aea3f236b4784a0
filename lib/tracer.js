'use strict'

// The life of tracing: enable, disable, other options in between.

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

/** the option in force @type {Options['capture'] | undefined} */
let captureOption
/** from the option `listeners` on @type {typeof import('./attribution/listener-places') | undefined} */
let listenerPlaces
/** from the option `whyExit` on @type {typeof import('./handles/exit-report') | undefined} */
let exitReport
/** prints what is open when it comes @type {string | undefined} */
let signal
/** answers commands @type {InstanceType<typeof import('./ask/server').LiveServer> | undefined} */
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

/** Installs all, or nothing: the stack may be full. */
function installWhole () {
  try {
    install()
  } catch (error) {
    uninstall()
    throw error
  }
}

/** Takes everything back, whatever one of the parts throws. */
function uninstall () {
  finishProfile()
  settings.enabled = false
  // Listeners first: they wrap what channels wrap
  runAll([applyBlocked, applySpans, applyRecord, core.stop, applyListeners, channels.disable,
    uncaught.unmonitor, ...appliers])
}

/** Puts options in force while tracing is on. */
function change () {
  endOldProfile()
  core.change()
  applyRest()
}

/** Ends a profile of another engine: numbers of chains are those of one. */
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

/** What this file puts in force, and takes back where tracing is off. */
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
 * Has the stacks of errors get hops (errors: true), or what prints them add hops (errors: 'print'), or leaves
 * them alone.
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
 * Loads what the program's first error needs: later that would delay its callbacks, or happen on top of a
 * stack that is full.
 */
function warmUp () {
  if (!settings.options.errors) return
  require('./attribution/error-hops').preload()
  formatter.preload()
}

/** Has registrations of listeners noted, or no longer. */
function applyListeners () {
  const { listeners: isOn } = inForce()
  if (isOn) listenerPlaces ??= require('./attribution/listener-places')
  listenerPlaces?.applyListeners(isOn)
}

/** Has what is open printed at a signal, or at none. */
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
    } catch (error) { // the program must not end because somebody asked
      printLine(`longstack: what is open cannot be printed: ${messageOf(error)}`)
    }
  })
}

/** Has the end of the process explained, or no longer. */
function applyWhyExit () {
  const { whyExit: isOn } = inForce()
  if (isOn) exitReport ??= require('./handles/exit-report')
  exitReport?.applyWhyExit(isOn)
}

/** Has commands answered on a socket, or on none. */
function applySocket () {
  const { socket } = inForce()
  server = replaced(server, socket, (path) => new (require('./ask/server').LiveServer)(path))
}

/**
 * Returns what an option is served by: what is there already, or another in its place.
 * @template {{ option: string, close: () => void }} T
 * @param {T | undefined} present
 * @param {string | undefined} option undefined: by none
 * @param {(option: string) => T} create
 */
function replaced (present, option, create) {
  if (present?.option === option) return present
  present?.close()
  return option === undefined ? undefined : guard.run(() => create(option))
}

/** Runs all works; throws what the first of those that fail has thrown. @param {Array<() => void>} works */
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
 * Compiles a filter; one that selects all needs no table of subsystems.
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
 * Ends the profile that is being recorded.
 * @returns {import('./profile/profile').Profile | undefined} undefined if there is none
 */
const finishProfile = () => profiles?.finish()

/** What other copies of the package reach of this one, too: see shared.js. */
const tracer = {
  /** directories of the copies of the package, that of this one first @type {Set<string>} */
  copies: new Set(),

  settings,
  enabled: () => settings.enabled,

  /** Puts options in force; turns tracing on. @param {Options} options */
  apply (options) {
    const isSelected = compileFilter(options.filter)
    changeState(() => {
      settings.options = options
      settings.isSelected = isSelected
      if (settings.enabled) return change()
      // A hook that is on while a start-up snapshot is built aborts Node.
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

  /** Forgets what was recorded, while tracing is off. */
  forget () {
    changeState(() => { if (!settings.enabled) core.forget() })
  },

  joinParentThread,
  finishProfile,

  /** Records a profile of this thread. @param {{ seconds: number, samples: boolean }} options */
  recordProfile: (options) => (profiles ??= require('./profile/recorder')).record(options),

  /** Has the errors of another realm formatted as well. @param {ErrorConstructor} error its own */
  addRealm: (error) => realms.add(error),

  /** Lists what is open, as it is kept. */
  openEntries: () => require('./core/registry').list()
}

module.exports = tracer
