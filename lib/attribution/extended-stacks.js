'use strict'

// The stacks of errors have hops (errors: true), or what prints them adds hops (errors: 'print'), or they are
// left alone. What makes hops is loaded when tracing begins, before the program's first line: later that
// would delay its callbacks, or happen on top of a stack that is full.

const guard = require('../core/guard')
const { on } = require('../core/on')
const { isAnyObject } = require('../objects')
const { settings } = require('../settings')
const formatter = require('../stacks/formatter')
const { warn } = require('../warnings')
const { observe } = require('./observed-errors')
const uncaught = require('./uncaught')

formatter.setReporter({
  observe (error) {
    try {
      if (isAnyObject(error)) observe(error)
    } catch {} // the program's stack may be full here
  },

  report: (error, sites) => guard.run(() => require('./error-hops').report(error, sites))
})

const isExtending = () => settings.enabled && settings.options.errors === true

on('contextRan', formatter.realms.noteRun)
on('formatterReplaced', () => { if (isExtending()) guard.run(formatter.enable) })
on('iteration', (time) => {
  if (isExtending() && !formatter.isInForce()) formatter.enable()
  formatter.realms.check(time)
})

/** Extends the stacks of errors, or leaves them alone, as the option says. */
function applyErrors () {
  const { errors } = settings.options
  uncaught.applyPrinting(errors === 'print')
  if (errors !== true) return formatter.disable()
  if (formatter.enable()) return
  warn('FROZEN', 'Error.prepareStackTrace cannot be set here; errors keep their short stack, ' +
    'trace.stack(error) returns the chain.')
}

/** Tracing is disabled. */
function leaveErrors () {
  formatter.disable()
  uncaught.applyPrinting(false)
}

/** Loads what the program's first error needs. */
function warmUp () {
  if (!settings.options.errors) return
  require('./error-hops').preload()
  formatter.preload()
}

module.exports = { applyErrors, leaveErrors, warmUp }
