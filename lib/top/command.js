'use strict'

// longstack top: what a running process does now, on a terminal that is redrawn, or as text or JSON.

const { setTimeout: sleep } = require('node:timers/promises')
const { DEFAULTS, ROUTE_COLUMNS } = require('../cli/commands')
const { integer, number, wrongValue } = require('../cli/flags')
const { asJson, colours, print, printError, width } = require('../cli/terminal')

/**
 * @typedef {object} Settings
 * @property {string} name of what is observed: a word of the command line
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
 * @property {import('./watched').Watched} watched
 */

const FIRST_MS = 500 // until the first figures
const ONCE_MS = 2000
const SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])

/** @type {import('../cli/commands').Main} */
async function main (values, [name]) {
  const { Model } = require('./model')
  const { Watched } = require('./watched')
  const settings = { name, ...check(values) }
  const isTerminal = process.stdout.isTTY === true && !settings.once && !settings.json
  const watched = new Watched(name, settings)
  try {
    const sentences = await watched.connect(!values['no-children'])
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
 * Asks at once, then at each interval, until it is ended.
 * @param {Observation} observation
 * @param {AbortSignal} signal ends it
 * @param {() => Promise<void> | void} show called with each answer but the first
 */
async function pollUntilEnd ({ model, watched, settings: { once, intervalMs } }, signal, show) {
  const poll = async () => model.add(await watched.poll(), Date.now())
  await poll()
  let next = performance.now() + (once ? ONCE_MS : Math.min(FIRST_MS, intervalMs))
  for (;;) {
    await sleep(Math.max(1, next - performance.now()), undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    next = performance.now() + intervalMs
    await poll()
    if (model.isEmpty) continue // it is busy
    await show()
    if (once) return
    watched.discover()
  }
}

/** Prints each look. @param {Observation} observation */
async function asLines (observation) {
  const { model, settings: { name, once, json, intervalMs, sort, filter } } = observation
  const { plainText } = require('./lines')
  const { panes: [routes], rowsOf } = require('./panes')
  const choice = { sort: sort ?? routes.sort, filter }
  const controller = new AbortController()
  for (const signal of SIGNALS) process.on(signal, () => controller.abort())
  let separator = ''
  await pollUntilEnd(observation, controller.signal, async () => {
    const frame = model.frame(once ? ONCE_MS : intervalMs)
    if (json) return await print(asJson({ ...frame, routes: rowsOf(routes, frame, choice) }, 0))
    await print(separator + plainText(frame, { width: width(), name, choice }))
    separator = '\n'
  })
}

/** Draws a screen. @param {Observation} observation @returns {Promise<number>} the exit code */
async function onTerminal (observation) {
  const { model, watched, settings } = observation
  const { Screen } = require('./screen')
  const { takeTerminal } = require('./terminal')
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

  /** @param {import('./panes').Reason} reason */
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

module.exports = { main }
