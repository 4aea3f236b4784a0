'use strict'

// longstack top: what a running process does now, on a terminal that is redrawn, or as text or JSON.

const { describe, parse, quote, UsageError } = require('./flags')
const { asJson, colours, print, printError, printHelp, width } = require('./terminal')
const { panes } = require('./top/panes')

/**
 * @typedef {object} Target processes and threads that are asked
 * @property {string} name for the title
 * @property {import('./asked-thread').AskedThread[]} threads
 * @property {() => Promise<void>} close
 *
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
const BUSY_MS = 10_000 // for a busy event loop to come free
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
  'no-children': { type: 'boolean', description: 'without the processes that this one started' }
}

const help = `Shows what a running process does: its routes with rate and latency, how late its event loop is,
CPU, what blocks, where it waits, what is open and grows. Child processes and workers are added.

  longstack top [flags] PID    on a terminal a screen with keys (? lists them), else a table a look

Latency is the time from the head of a request to the last byte of its response.

${describe(flags)}

Exit code: 0; 1 if the process cannot be asked or has ended, 2 for wrong usage.
`

/** @param {string[]} args */
async function main (args) {
  const { values, operands } = parse(args, flags)
  if (values.help) return await printHelp(help)
  if (operands.length === 0) throw new UsageError('Missing process id.')
  if (operands.length > 1) throw new UsageError(`One process at a time. Received ${quote(operands[1])}.`)
  const [operand] = operands
  if (!/^\d+$/.test(operand)) throw new UsageError(`Expected a process id. Received ${quote(operand)}.`)
  const settings = check(values)
  const { RefusedError } = require('./process-facts')
  try {
    return await show(await connect(operand, !values['no-children']), settings)
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
 * @param {string} operand
 * @param {boolean} withChildren
 * @returns {Promise<Target>}
 */
async function connect (operand, withChildren) {
  const { BlockedError } = require('./asked-thread')
  const { askProcesses } = require('./asked')
  const options = { children: withChildren, busyMs: BUSY_MS }
  const { processes, refused, close } = await askProcesses([Number(operand)], options)
  for (const { sentence } of refused) printError(`longstack: ${sentence}`)
  const threads = processes.flatMap((asked) => asked.threads)
  for (const { pid, busy, threads } of processes) {
    if (threads.length === 0) printError(`longstack: The event loop of process ${pid} is blocked:\n${busy}`)
  }
  if (threads.length > 0) return { name: operand, threads, close }
  await close()
  throw new BlockedError('No event loop is free to answer.')
}

/**
 * Shows a target until it has ended, or the user ends it.
 * @param {Target} target
 * @param {Settings} settings
 * @returns {Promise<number | undefined>} the exit code
 */
async function show (target, settings) {
  const { Model } = require('./top/model')
  const { Poller } = require('./top/poller')
  const model = new Model()
  const poller = new Poller(model, settings)
  for (const thread of target.threads) poller.add(thread)
  const isTerminal = process.stdout.isTTY === true && !settings.once && !settings.json
  try {
    return await (isTerminal ? onTerminal : asLines)({ model, poller, target, settings })
  } finally {
    await poller.stop()
    await target.close()
  }
}

/**
 * @typedef {object} Parts
 * @property {import('./top/model').Model} model
 * @property {import('./top/poller').Poller} poller
 * @property {Target} target
 * @property {Settings} settings
 */

/**
 * Asks at once, then at each interval, until it is ended.
 * @param {Parts} parts
 * @param {AbortSignal} signal ends it
 * @param {() => Promise<void> | void} show called with each answer but the first
 * @returns {Promise<number>} the exit code
 */
async function pollUntilEnd ({ poller, settings, target }, signal, show) {
  await poller.poll()
  let next = performance.now() + (settings.once ? ONCE_MS : Math.min(FIRST_MS, settings.intervalMs))
  for (;;) {
    await pause(next - performance.now(), signal)
    if (signal.aborted) return 0
    next = performance.now() + settings.intervalMs
    await poller.poll()
    if (poller.size === 0 || !poller.isHeard) throw endOf(target, poller)
    await show()
    if (settings.once) return 0
  }
}

/** @param {Target} target @param {import('./top/poller').Poller} poller */
function endOf ({ name }, { failure }) {
  const { RefusedError } = require('./process-facts')
  return failure instanceof RefusedError ? failure : new RefusedError(`Process ${name} has ended.`)
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
  const { model, target: { name }, settings } = parts
  const { plainText } = require('./top/lines')
  const { rowsOf } = require('./top/panes')
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
  const { model, poller, target: { name }, settings } = parts
  const { Screen } = require('./top/screen')
  const { takeTerminal } = require('./top/terminal')
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

  /** @param {string | undefined} text @param {import('./top/screen').Key} key */
  function press (text, key) {
    const action = screen.press(text, key)
    if (action !== undefined && 'quit' in action) controller.abort()
    else if (action !== undefined) answer(action.ask)
    draw()
  }

  /** @param {import('./top/panes').Reason} reason */
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
