'use strict'

// longstack top: what a running process does now, on a terminal that is redrawn, or as text or JSON.

const { DEFAULTS, ROUTE_COLUMNS } = require('../cli/commands')
const { quote, UsageError } = require('../cli/flags')
const { asJson, colours, print, printError, width } = require('../cli/terminal')
const { panes } = require('./panes')

/**
 * @typedef {object} Settings
 * @property {number} intervalMs
 * @property {number | undefined} blockedMs
 * @property {boolean} once
 * @property {boolean} json
 * @property {number | undefined} sort index of the column of routes
 * @property {string} filter
 */

const MIN_SECONDS = 0.1
const MAX_SECONDS = 3600
const FIRST_MS = 500 // until the first figures
const ONCE_MS = 2000

/** @type {import('../cli/commands').Main} */
async function main (values, [name]) {
  return await show(name, !values['no-children'], check(values))
}

/** @param {Record<string, any>} values @returns {Settings} @throws {UsageError} */
function check ({ interval = `${DEFAULTS.topSeconds}`, sort, only = '', blocked, ...values }) {
  const seconds = Number(interval)
  if (!/^\d*\.?\d+$/.test(interval) || seconds < MIN_SECONDS || seconds > MAX_SECONDS) {
    const range = `a number from ${MIN_SECONDS} to ${MAX_SECONDS}`
    throw new UsageError(`--interval must be ${range}. Received ${quote(interval)}.`)
  }
  if (sort !== undefined && !ROUTE_COLUMNS.includes(sort)) {
    throw new UsageError(`--sort must be one of ${ROUTE_COLUMNS.join(', ')}. Received ${quote(sort)}.`)
  }
  if (blocked !== undefined && !(/^\d{1,7}$/.test(blocked) && Number(blocked) > 0)) {
    throw new UsageError(`--blocked must be an integer of at least 1. Received ${quote(blocked)}.`)
  }
  return {
    intervalMs: seconds * 1000,
    blockedMs: blocked === undefined ? undefined : Number(blocked),
    once: values.once === true,
    json: values.json === true,
    sort: sort === undefined ? undefined : ROUTE_COLUMNS.indexOf(sort),
    filter: only
  }
}

/**
 * Shows what processes do until they have ended, or the user ends it.
 * @param {string} name of what is observed: a word of the command line
 * @param {boolean} withChildren
 * @param {Settings} settings
 * @returns {Promise<number | undefined>} the exit code
 */
async function show (name, withChildren, settings) {
  const { Model } = require('./model')
  const { Observed } = require('./observed')
  const { Poller } = require('./poller')
  const model = new Model()
  const poller = new Poller(model, settings)
  const observed = new Observed(name, (thread) => poller.add(thread))
  const isTerminal = process.stdout.isTTY === true && !settings.once && !settings.json
  for (const sentence of await observed.connect(withChildren)) printError(`longstack: ${sentence}`)
  try {
    return await (isTerminal ? onTerminal : asLines)({ model, poller, observed, settings })
  } finally {
    await poller.stop()
    await observed.close()
  }
}

/**
 * @typedef {object} Parts
 * @property {import('./model').Model} model
 * @property {import('./poller').Poller} poller
 * @property {import('./observed').Observed} observed
 * @property {Settings} settings
 */

/**
 * Asks at once, then at each interval, until it is ended.
 * @param {Parts} parts
 * @param {AbortSignal} signal ends it
 * @param {() => Promise<void> | void} show called with each answer but the first
 * @returns {Promise<number>} the exit code
 */
async function pollUntilEnd ({ model, poller, settings, observed }, signal, show) {
  await poller.poll()
  let next = performance.now() + (settings.once ? ONCE_MS : Math.min(FIRST_MS, settings.intervalMs))
  for (;;) {
    await pause(Math.max(1, next - performance.now()), signal)
    if (signal.aborted) return 0
    next = performance.now() + settings.intervalMs
    await poller.poll()
    if (poller.size === 0) throw endOf(observed, poller)
    if (!poller.hasAnswered && poller.failure !== undefined) throw poller.failure
    if (model.isEmpty) continue // it is busy
    await show()
    if (settings.once) return 0
    observed.discover()
  }
}

/** @param {{ name: string }} observed @param {import('./poller').Poller} poller */
function endOf ({ name }, { failure, hasAnswered }) {
  const { RefusedError } = require('../ask/system')
  if (!hasAnswered && failure !== undefined) return failure
  return new RefusedError(/^\d+$/.test(name) ? `Process ${name} has ended.` : `What ${name} named has ended.`)
}

/** @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
function pause (ms, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end)
  })
}

/** Prints each look. @param {Parts} parts */
async function asLines (parts) {
  const { model, observed: { name }, settings } = parts
  const { plainText } = require('./lines')
  const { rowsOf } = require('./panes')
  const choice = { sort: settings.sort ?? panes[0].sort, filter: settings.filter }
  const controller = new AbortController()
  const signals = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])
  const abort = () => controller.abort()
  for (const signal of signals) process.on(signal, abort)
  let isFirst = true
  try {
    return await pollUntilEnd(parts, controller.signal, async () => {
      const frame = model.frame(settings.once ? ONCE_MS : settings.intervalMs)
      const routes = rowsOf(panes[0], frame, choice)
      if (settings.json) return await print(asJson({ ...frame, routes }, 0))
      const text = plainText(frame, { width: width(), name, choice })
      await print(isFirst ? text : `\n${text}`)
      isFirst = false
    })
  } finally {
    for (const signal of signals) process.off(signal, abort)
  }
}

/** Draws a screen. @param {Parts} parts */
async function onTerminal (parts) {
  const { model, poller, observed: { name }, settings } = parts
  const { Screen } = require('./screen')
  const { takeTerminal } = require('./terminal')
  const screen = new Screen(model, { name, sort: settings.sort, filter: settings.filter })
  const palette = colours(1)
  const controller = new AbortController()
  let code = 0
  let isDrawn = false
  const terminal = takeTerminal({ press, resized: draw, end })

  /** @param {number} exitCode */
  function end (exitCode) {
    code = exitCode
    controller.abort()
  }

  function draw () {
    if (isDrawn) terminal.draw(screen.lines({ ...terminal.size(), colours: palette }))
  }

  /** @param {string | undefined} text @param {import('./screen').Key} key */
  function press (text, key) {
    const action = screen.press(text, key)
    if (action !== undefined && 'quit' in action) controller.abort()
    else if (action !== undefined) answer(action.ask)
    draw()
  }

  /** @param {import('./panes').Reason} reason */
  function answer (reason) {
    if ('stack' in reason) return screen.show(reason.stack)
    screen.show('…')
    poller.describe(reason.place).catch((error) => `longstack: ${error.message}`).then((text) => {
      screen.show(text)
      draw()
    })
  }

  let failure
  try {
    terminal.draw(['Looking…'])
    code = await pollUntilEnd(parts, controller.signal, () => { isDrawn = true; draw() }) || code
  } catch (error) {
    failure = error
  }
  terminal.giveBack()
  if (failure !== undefined) throw failure
  return code
}

module.exports = { main }
