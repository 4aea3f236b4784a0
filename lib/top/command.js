'use strict'

// longstack top: what a running process does now, on a terminal that is redrawn, or as text or JSON.

const { describe, parse, quote, UsageError } = require('./flags')
const { asJson, colours, print, printError, printHelp, width } = require('./terminal')
const { panes } = require('../top/panes')

/**
 * @typedef {object} Settings
 * @property {number} intervalMs
 * @property {number | undefined} blockedMs
 * @property {boolean} once
 * @property {boolean} json
 * @property {number | undefined} sort index of the column of routes
 * @property {string} filter
 */

const DEFAULT_SECONDS = '1'
const MIN_SECONDS = 0.1
const MAX_SECONDS = 3600
const FIRST_MS = 500 // until the first figures
const ONCE_MS = 2000
const SORTS = ['name', 'rate', 'p50', 'p99', 'max', 'errors', 'lost'] // the columns of routes

/** @type {import('./flags').Flags} */
const flags = {
  interval: { type: 'string', value: 'SECONDS', description: 'between two looks, 0.1 to 3600; default 1' },
  once: { type: 'boolean', description: 'look for two seconds, print what there is, and end' },
  json: { type: 'boolean', description: 'a line of JSON for each look' },
  sort: { type: 'string', value: 'COLUMN', description: `of routes: ${SORTS.join(', ')}` },
  only: { type: 'string', value: 'TEXT', description: 'only routes whose name contains it' },
  blocked: {
    type: 'string',
    value: 'MS',
    description: 'report callbacks that block the event loop for as long; until top ends'
  },
  'no-children': { type: 'boolean', description: 'without the Node processes that it has started' }
}

const help = `Shows what a running process does: its routes with rate and latency, how late its event loop is,
CPU, what blocks, where it waits, what is open and grows; of its workers, and of the Node processes that it
has started, as well.

  longstack top [flags] PID              a process
  longstack top [flags] :PORT            the processes at a port
  longstack top [flags] ADDRESS:PORT     the same for an address
  longstack top [flags] PATH             processes that listen on LONGSTACK_SOCKET

On a terminal it is a screen with keys (? lists them), elsewhere a table for each look. Latency is the time
from the head of a request to the last byte of its response.

${describe(flags)}

Exit code: 0; 1 if the process cannot be asked or has ended, 2 for wrong usage.
`

/** @param {string[]} args */
async function main (args) {
  const { values, operands } = parse(args, flags)
  if (values.help) return await printHelp(help)
  if (operands.length === 0) throw new UsageError('Missing process id, port or address.')
  if (operands.length > 1) throw new UsageError(`One target at a time. Received ${quote(operands[1])}.`)
  const settings = check(values)
  const { RefusedError } = require('../ask/system')
  try {
    return await show(operands[0], !values['no-children'], settings)
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    printError(`longstack: ${error.message}`)
    return 1
  }
}

/** @param {Record<string, any>} values @returns {Settings} @throws {UsageError} */
function check ({ interval = DEFAULT_SECONDS, once = false, json = false, sort, only = '', blocked }) {
  const seconds = Number(interval)
  if (!/^\d*\.?\d+$/.test(interval) || seconds < MIN_SECONDS || seconds > MAX_SECONDS) {
    const range = `a number from ${MIN_SECONDS} to ${MAX_SECONDS}`
    throw new UsageError(`--interval must be ${range}. Received ${quote(interval)}.`)
  }
  if (sort !== undefined && !SORTS.includes(sort)) {
    throw new UsageError(`--sort must be one of ${SORTS.join(', ')}. Received ${quote(sort)}.`)
  }
  if (blocked !== undefined && !(/^\d{1,7}$/.test(blocked) && Number(blocked) > 0)) {
    throw new UsageError(`--blocked must be an integer of at least 1. Received ${quote(blocked)}.`)
  }
  return {
    intervalMs: seconds * 1000,
    blockedMs: blocked === undefined ? undefined : Number(blocked),
    once,
    json,
    sort: sort === undefined ? undefined : SORTS.indexOf(sort),
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
  const { Model } = require('../top/model')
  const { Observed } = require('../top/observed')
  const { Poller } = require('../top/poller')
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
 * @property {import('../top/model').Model} model
 * @property {import('../top/poller').Poller} poller
 * @property {import('../top/observed').Observed} observed
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
    await pause(next - performance.now(), signal)
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

/** @param {{ name: string }} observed @param {import('../top/poller').Poller} poller */
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
  const { plainText } = require('../top/lines')
  const { rowsOf } = require('../top/panes')
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
  const { Screen } = require('../top/screen')
  const { takeTerminal } = require('../top/terminal')
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

  /** @param {string | undefined} text @param {import('../top/screen').Key} key */
  function press (text, key) {
    const action = screen.press(text, key)
    if (action !== undefined && 'quit' in action) controller.abort()
    else if (action !== undefined) answer(action.ask)
    draw()
  }

  /** @param {import('../top/panes').Reason} reason */
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

module.exports = { help, main }
