'use strict'

// longstack top: live figures of a running process, on a redrawn terminal, or as text or JSON.

const readline = require('node:readline')
const { setTimeout: sleep } = require('node:timers/promises')
const { DEFAULTS, ROUTE_COLUMNS } = require('../cli/commands')
const { integer, number, wrongValue } = require('../cli/flags')
const { boxesOfTarget, orFromBox } = require('../cli/from-box')
const { asJson, cleanText, colours, print, printError, untilSignal, width } = require('../cli/terminal')
const { WatchedBoxes } = require('./boxes')
const { panes: [routesPane], plainText, rowsOf } = require('./lines')
const { Model } = require('./model')
const { Screen } = require('./screen')
const { Watched } = require('./watched')

/**
 * @typedef {object} Settings
 * @property {string} name of the target: a word of the command line
 * @property {number} intervalMs
 * @property {number | undefined} blockedMs
 * @property {boolean} once
 * @property {boolean} json
 * @property {number | undefined} sort index of the column of routes
 * @property {string} filter
 *
 * @typedef {object} Observation
 * @property {Settings} settings
 * @property {import('./model').Model} model
 * @property {import('./watched').Watched | WatchedBoxes} watched
 */

const FIRST_MS = 500 // until the first figures
const ONCE_MS = 2000
/** The exit codes after signals. @type {Record<string, number>} */
const SIGNAL_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }

// DEC private modes (xterm, "Control Sequences"): 1049 the alternate screen, 25 the cursor, 7 line wrapping
const TAKE = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J'
const RETURN = '\u001b[?7h\u001b[?25h\u001b[?1049l'
const CLEAR = '\u001b[2J'
const HOME = '\u001b[H'
const ERASE = '\u001b[K' // a line; after text of the full width it would erase the last character
const MIN_COLUMNS = 20
const MIN_ROWS = 4

/** @type {import('../cli/commands').Main} */
async function main (values, [name]) {
  const settings = { name, ...check(values) }
  const withChildren = !values['no-children']
  const isAsked = values.ask || settings.blockedMs !== undefined // a box has only a callback that still runs
  const files = isAsked ? new Map() : boxesOfTarget(name, withChildren)
  const boxes = new WatchedBoxes(name, files, withChildren)
  if (boxes.canRead) return await show(settings, boxes, withChildren)
  return await orFromBox(() => show(settings, new Watched(name, settings), withChildren))(values, [name])
}

/** @param {Settings} settings @param {Observation['watched']} watched @param {boolean} withChildren */
async function show (settings, watched, withChildren) {
  const isTerminal = process.stdout.isTTY === true && !settings.once && !settings.json
  try {
    const sentences = await watched.connect(withChildren)
    for (const sentence of sentences) printError(`longstack: ${sentence}`)
    return await (isTerminal ? onTerminal : asLines)({ settings, model: new Model(), watched })
  } finally {
    await watched.close()
  }
}

/**
 * @param {Record<string, any>} values
 * @returns {Omit<Settings, 'name'>}
 * @throws {import('../cli/flags').UsageError}
 */
function check ({ interval = `${DEFAULTS.topSeconds}`, sort, only = '', blocked, ...values }) {
  if (sort !== undefined && !ROUTE_COLUMNS.includes(sort)) {
    throw wrongValue('sort', `one of ${ROUTE_COLUMNS.join(', ')}`, sort)
  }
  return {
    intervalMs: number('interval', interval, 0.1, 3600) * 1000,
    blockedMs: blocked === undefined ? undefined : integer('blocked', blocked, 1),
    once: values.once === true,
    json: values.json === true,
    sort: sort === undefined ? undefined : ROUTE_COLUMNS.indexOf(sort),
    filter: only
  }
}

/**
 * Polls at once, then at each interval, until it is aborted.
 * @param {Observation} observation
 * @param {AbortSignal} signal ends it
 * @param {() => Promise<void> | void} show called after each poll but the first
 */
async function pollUntilEnd ({ model, watched, settings: { once, intervalMs } }, signal, show) {
  const poll = async () => model.add(await watched.poll(), Date.now())
  await poll()
  let next = performance.now() + (once ? ONCE_MS : Math.min(FIRST_MS, intervalMs))
  for (;;) {
    const pauseMs = Math.max(1, next - performance.now())
    const isDue = pauseMs <= watched.maxPauseMs
    await sleep(Math.min(pauseMs, watched.maxPauseMs), undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    if (isDue) next = performance.now() + intervalMs
    await poll()
    if (!isDue || model.isEmpty) continue // isEmpty: the process is busy
    await show()
    if (once) return
    watched.discover()
  }
}

/**
 * Prints each frame.
 * @param {Observation} observation
 * @returns {Promise<1 | undefined>} 1 if a thread is stuck in the only frame
 */
async function asLines (observation) {
  const { model, settings: { name, once, json, intervalMs, sort, filter } } = observation
  const choice = { sort: sort ?? routesPane.sort, filter }
  let separator = ''
  let isStuck = false
  const show = async () => {
    const frame = model.frame(once ? ONCE_MS : intervalMs)
    isStuck = frame.threads.some(({ stuck }) => stuck !== undefined)
    if (json) return await print(asJson({ ...frame, routes: rowsOf(routesPane, frame, choice) }, 0))
    await print(separator + plainText(frame, { width: width(), name, choice }))
    separator = '\n'
  }
  await untilSignal((signal) => pollUntilEnd(observation, signal, show))
  return once && isStuck ? 1 : undefined
}

/** Draws a screen. @param {Observation} observation @returns {Promise<number>} the exit code */
async function onTerminal (observation) {
  const { model, watched, settings } = observation
  const screen = new Screen(model, settings)
  const palette = colours(1)
  const controller = new AbortController()
  let code = 0
  const terminal = takeTerminal({
    press,
    draw,
    end: (exitCode) => {
      code = exitCode
      controller.abort()
    }
  })

  function draw () {
    terminal.draw(model.isEmpty ? ['Looking…'] : screen.lines({ ...terminal.size(), colours: palette }))
  }

  /** @param {string | undefined} text @param {import('./screen').Key} key */
  function press (text, key) {
    const action = screen.press(text, key)
    if (action !== undefined && 'quit' in action) controller.abort()
    else if (action !== undefined) answer(action.ask)
    draw()
  }

  /** @param {import('./lines').Reason} reason */
  function answer (reason) {
    if ('stack' in reason) return screen.show(reason.stack)
    screen.show('…')
    watched.describe(reason.place).catch((error) => `longstack: ${error.message}`).then((text) => {
      screen.show(text)
      draw()
    })
  }

  try {
    draw()
    await pollUntilEnd(observation, controller.signal, draw)
  } finally {
    terminal.giveBack()
  }
  return code
}

/**
 * Takes over the terminal of stdin and stdout.
 * @param {object} handlers
 * @param {(text: string | undefined, key: import('./screen').Key) => void} handlers.press
 * @param {() => void} handlers.draw the size has changed, and the screen is empty
 * @param {(code: number) => void} handlers.end a signal came, or the terminal is gone; takes the exit code
 */
function takeTerminal ({ press, draw, end }) {
  const { stdin, stdout } = process
  let isTaken = true

  function giveBack () {
    if (!isTaken) return
    isTaken = false
    process.off('exit', giveBack).off('uncaughtExceptionMonitor', giveBack)
    for (const signal of Object.keys(SIGNAL_CODES)) process.off(signal, onSignal)
    stdout.off('resize', onResize)
    stdin.off('keypress', press).off('end', onEnd).off('error', onEnd)
    try {
      if (stdin.isTTY) stdin.setRawMode(false)
    } catch {} // it is gone
    stdin.pause()
    stdout.write(RETURN)
  }

  const onSignal = (/** @type {NodeJS.Signals} */ signal) => end(SIGNAL_CODES[signal])
  const onEnd = () => end(0)
  const onResize = () => {
    stdout.write(CLEAR)
    draw()
  }

  process.on('exit', giveBack).on('uncaughtExceptionMonitor', giveBack) // so Node's message stays visible
  for (const signal of Object.keys(SIGNAL_CODES)) process.on(signal, onSignal)
  stdout.write(TAKE)
  stdout.on('resize', onResize)
  if (stdin.isTTY) {
    stdin.setRawMode(true)
    readline.emitKeypressEvents(stdin)
    stdin.on('keypress', press).on('end', onEnd).on('error', onEnd).resume()
  }

  return {
    giveBack,

    size: () => ({
      columns: Math.max(MIN_COLUMNS, stdout.columns || 80),
      rows: Math.max(MIN_ROWS, stdout.rows || 24)
    }),

    /** @param {string[]} lines one per row, or fewer on an empty screen */
    draw: (lines) => {
      if (isTaken) stdout.write(`${HOME}${lines.map((line) => ERASE + cleanText(line)).join('\r\n')}`)
    }
  }
}

module.exports = { main }
