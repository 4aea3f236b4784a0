'use strict'

// The life of tracing: enable, disable, other options in between. tracer/wiring.js says who is given what,
// tracer/listener.js what is done when something happens; what users ask is answered by answers.js.

const guard = require('./context/guard')
const { takeBackChain } = require('./hooks/threads')
const { changeState } = require('./listeners')
const { providers } = require('./node-objects')
const { settings } = require('./settings')
const { createEngine } = require('./tracer/engine')
const { Wiring } = require('./tracer/wiring')
const { messageOf, printLine } = require('./warnings')

/**
 * @typedef {import('./options').Options} Options
 * @typedef {ReturnType<typeof createTracer>} Tracer
 */

function createTracer () {
  settings.isSelected = compileFilter(settings.options.filter)
  const wiring = new Wiring()
  const { asyncLayer, channels, uncaughtLayer, formatter } = wiring
  const { applyErrors, applySpans, applyBlocked } = createFeatureSwitches(wiring)
  const engine = createEngine(wiring)
  const signal = createSignal(wiring)
  const live = createLive((file) => new (require('./ask/server').LiveServer)(tracer, file))

  function install () {
    settings.enabled = true
    engine.apply()
    asyncLayer.enable()
    channels.enable()
    uncaughtLayer.monitor()
    if (wiring.errorHandlers.length > 0) uncaughtLayer.intercept()
    applyRest()
    warmUp(wiring)
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
    wiring.profiles?.finish()
    settings.enabled = false
    runAll([
      applyBlocked,
      applySpans,
      asyncLayer.disable,
      engine.stop,
      takeBackChain,
      channels.disable,
      () => wiring.koaRoutes?.disable(),
      ...wiring.passing,
      uncaughtLayer.unmonitor,
      uncaughtLayer.release,
      formatter.disable,
      () => wiring.errorPrinter?.disable(),
      () => signal.apply(undefined),
      () => live.apply(undefined)
    ])
  }

  /** Puts options in force while tracing is on. */
  function change () {
    takeBackChain()
    engine.apply()
    asyncLayer.updateFilter()
    asyncLayer.updateHooks()
    applyRest()
  }

  function applyRest () {
    applyErrors()
    signal.apply(settings.options.signal)
    live.apply(settings.options.socket)
    applySpans()
    applyBlocked()
  }

  const tracer = {
    wiring,
    enabled: () => settings.enabled,
    applySpans,

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

    hasRecorded: engine.hasRecorded,

    /** Forgets what was recorded, while tracing is off. */
    forget () {
      changeState(() => { if (!settings.enabled) engine.forget() })
    }
  }
  return tracer
}

/**
 * Loads what the program's first error needs, before its first line: later that would delay its callbacks, or
 * happen on top of a stack that is full.
 * @param {Wiring} wiring
 */
function warmUp (wiring) {
  const queries = wiring.queries()
  if (!wiring.settings.options.errors) return
  queries.preload()
  wiring.formatter.preload()
}

/** Answers commands on a socket. @param {(file: string) => { path: string, close: () => void }} listen */
function createLive (listen) {
  /** @type {ReturnType<typeof listen> | undefined} */
  let server

  return {
    /** @param {string | undefined} next undefined: on none */
    apply (next) {
      if (server?.path === next) return
      server?.close()
      server = next === undefined ? undefined : guard.run(() => listen(next))
    }
  }
}

/** Switches features on and off, as options and listeners demand. @param {Wiring} wiring */
function createFeatureSwitches (wiring) {
  const { asyncLayer, formatter, warnings } = wiring

  /** Extends the stacks of errors, or leaves them alone. */
  function applyErrors () {
    const { errors } = settings.options
    applyPrinting(errors === 'print')
    if (errors !== true) return formatter.disable()
    if (formatter.enable()) return
    warnings.warn('FROZEN', 'Error.prepareStackTrace cannot be set here; errors keep their short stack, ' +
      'trace.stack(error) returns the chain.')
  }

  /** Has Node print errors with hops that their stacks do not have. @param {boolean} isOn */
  function applyPrinting (isOn) {
    if (!isOn) return wiring.errorPrinter?.disable()
    guard.run(() => {
      wiring.errorPrinter ??= require('./format/printed-errors').createErrorPrinter(wiring)
      wiring.errorPrinter.enable()
    })
    wiring.uncaughtLayer.intercept()
  }

  /** Makes spans where they go somewhere. */
  function applySpans () {
    const { enabled, options: { spans, blocked } } = settings
    const isHeard = spans !== undefined || blocked !== undefined || wiring.spanListeners.size > 0
    guard.run(() => {
      if (!enabled || !isHeard) return wiring.spans?.disable()
      wiring.spans ??= require('./tracer/features').createSpanRecorder(wiring)
      wiring.spans.enable(spans)
    })
  }

  /** Watches for blocking callbacks where that is asked for. */
  function applyBlocked () {
    const { enabled, options } = settings
    const threshold = enabled ? options.blocked ?? wiring.blockedObservers.ms : undefined
    if (threshold === undefined && wiring.blocked === undefined) return
    guard.run(() => {
      wiring.blocked ??= require('./tracer/features').createBlockedCallbacks(wiring)
      wiring.blocked.configure(threshold)
    })
    wiring.events.callbackStarted = wiring.blocked?.callbackListener()
    asyncLayer.updateWatching()
  }

  wiring.blockedObservers.apply = applyBlocked
  return { applyErrors, applySpans, applyBlocked }
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

/** Prints what is open when a signal comes. @param {Wiring} wiring */
function createSignal (wiring) {
  /** @type {string | undefined} */
  let current

  const print = () => guard.run(() => {
    try {
      printLine(wiring.queries().summary(wiring.settings.isSelected))
    } catch (error) { // the program must not end because somebody asked
      printLine(`longstack: what is open cannot be printed: ${messageOf(error)}`)
    }
  })

  return {
    /** @param {string | undefined} next undefined: on none */
    apply (next) {
      if (current === next) return
      if (current !== undefined) process.off(current, print)
      current = next
      if (next !== undefined) guard.run(() => process.on(next, print))
    }
  }
}

const selectsAll = () => true

/**
 * Compiles a filter; one that selects all needs no table of subsystems.
 * @param {readonly string[]} filter
 * @returns {(type: string) => boolean}
 */
function compileFilter (filter) {
  if (filter.length === 1 && filter[0] === '*') return selectsAll
  return require('./context/subsystems').compile(filter, providers())
}

module.exports = { createTracer }
