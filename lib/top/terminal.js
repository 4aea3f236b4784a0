'use strict'

// A terminal that is taken over: the alternate screen, without a cursor, keys one by one. Whatever ends the
// command, it is given back as it was.

const readline = require('node:readline')

// DEC private modes (xterm, "Control Sequences"): 1049 the alternate screen, 25 the cursor, 7 line wrapping
const TAKE = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J'
const RETURN = '\u001b[?7h\u001b[?25h\u001b[?1049l'
const CLEAR = '\u001b[2J'
const HOME = '\u001b[H'
const ERASE = '\u001b[K' // a line; after a text of the whole width it would take the last character
const MIN_COLUMNS = 20
const MIN_ROWS = 4
/** @type {Record<string, number>} */
const SIGNAL_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }

/**
 * Takes the terminal of stdin and stdout over.
 * @param {object} handlers
 * @param {(text: string | undefined, key: import('./screen').Key) => void} handlers.press
 * @param {() => void} handlers.draw the size is another one, and nothing is drawn
 * @param {(code: number) => void} handlers.end a signal came, or the terminal is gone: the exit code
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

  process.on('exit', giveBack).on('uncaughtExceptionMonitor', giveBack) // so that Node's message stays
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

    /** @param {string[]} lines as many as there are rows, or the first ones of a screen that is empty */
    draw: (lines) => {
      if (isTaken) stdout.write(`${HOME}${lines.map((line) => ERASE + line).join('\r\n')}`)
    }
  }
}

module.exports = { takeTerminal }
