'use strict'

// The screen of longstack top: the selection, the keys and the lines of a frame. Independent of a terminal.

const { clean } = require('../text')
const { noColours, time } = require('../../report/render/text-parts')
const { columnsOf } = require('../../report/render/wrap')
const {
  alertLines, curveLine, cut, idOf, loadLine, panes, reasonOf, requestLine, rowsOf, tableLines, titleLine
} = require('./lines')

/**
 * @typedef {import('./model').Frame} Frame
 * @typedef {import('./model').Model} Model
 * @typedef {import('../../report/render/text-parts').Colours} Colours
 * @typedef {{ name?: string, ctrl?: boolean, shift?: boolean }} Key as node:readline reports it
 * @typedef {{ quit: true } | { ask: import('./lines').Reason }} Action effect of a key
 */

/** Time spans that figures of routes can cover, and the steps of the curves. */
const SPANS = [
  { ms: 2_000, stepMs: 1_000 },
  { ms: 60_000, stepMs: 1_000 },
  { ms: 600_000, stepMs: 10_000 },
  { ms: 3_600_000, stepMs: 60_000 }
]
const STEPS = 60 // of a curve
/** Rows that a key moves the selection by. @type {Record<string, number>} */
const STEPS_OF = { up: -1, down: 1, pageup: -10, pagedown: 10 }
const MAX_FILTER = 60 // characters
const HIGH = 12 // rows of a screen that has room for the whole head
const LOW = 8 // rows for its last two lines
const HELP = [
  'q, Ctrl-C     quit',
  'Tab, r a h b c  Routes, Waits (awaits), Handles, Blockers, Processes (CPU)',
  'up, down      select a row; with Page Up, Page Down ten',
  'Enter, w      why: the chain of the selected row; Esc or Enter goes back',
  's, left, right, 1 to 9  sort by a column',
  '/             filter by text; Esc clears it',
  'p, space      pause, go on',
  't             what figures of routes cover: 2 s, 1 min, 10 min, 1 h',
  '?             this help'
]
const HINT = 'q quit  Tab pane  s sort  / filter  p pause  w why  t span  ? help'

class Screen {
  #pane = panes[0]
  /** index of the column, by pane */
  #sorts = new Map(panes.map((pane) => [pane, pane.sort]))
  /** id of the row, by pane @type {Map<import('./lines').Pane, string>} */
  #selected = new Map()
  #span = SPANS[0]
  #filter = ''
  #isTyping = false
  /** text over the table; undefined if the table is shown @type {string[] | undefined} */
  #text
  #scrolled = 0
  /** frame that is shown while paused @type {Frame | undefined} */
  #paused

  /**
   * @param {Model} model
   * @param {{ name: string, sort?: number, filter?: string }} options name of the target
   */
  constructor (model, { name, sort = panes[0].sort, filter = '' }) {
    this.model = model
    this.name = name
    this.#filter = filter
    this.#sorts.set(panes[0], sort)
  }

  /** Shows text over the table, such as a chain. @param {string} text */
  show (text) {
    this.#text = text.split('\n').map(clean)
    this.#scrolled = 0
  }

  #frame () {
    return this.#paused ?? this.model.frame(this.#span.ms)
  }

  #sort () {
    return /** @type {number} */ (this.#sorts.get(this.#pane))
  }

  /** Returns the rows of the pane, and the index of the selected one; 0 if that row is gone. */
  #rows () {
    const rows = rowsOf(this.#pane, this.#frame(), { sort: this.#sort(), filter: this.#filter })
    const id = this.#selected.get(this.#pane)
    return { rows, index: Math.max(0, rows.findIndex((row) => idOf(row) === id)) }
  }

  /**
   * Handles a key.
   * @param {string | undefined} text that the key produces
   * @param {Key} key
   * @returns {Action | undefined}
   */
  press (text, { name, ctrl = false, shift = false }) {
    if (ctrl && (name === 'c' || name === 'd')) return { quit: true }
    if (this.#isTyping) return this.#type(text, name, ctrl)
    const letter = ctrl ? undefined : text
    if (letter === 'q') return { quit: true }
    const steps = name === undefined ? undefined : STEPS_OF[name]
    if (this.#text !== undefined) {
      if (steps === undefined) this.#text = undefined
      else this.#scrolled += steps
      return
    }
    const pane = panes.find((other) => other.letter === letter)
    if (pane !== undefined) this.#pane = pane
    else if (steps !== undefined) this.#move(steps)
    else if (name === 'escape') this.#filter = ''
    else if (name === 'tab') this.#pane = after(panes, this.#pane, shift ? -1 : 1)
    else if (letter === '/') this.#isTyping = true
    else if (letter === 'p' || letter === ' ') this.#paused = this.#paused ? undefined : this.#frame()
    else if (letter === 't') this.#span = after(SPANS, this.#span, 1)
    else if (letter === '?') this.show(HELP.join('\n'))
    else if (letter === 's' || name === 'right') this.#sortBy(this.#sort() + 1)
    else if (name === 'left') this.#sortBy(this.#sort() + this.#pane.columns.length - 1)
    else if (this.#pane.columns[Number(letter) - 1] !== undefined) this.#sortBy(Number(letter) - 1)
    else if (name === 'return' || name === 'enter' || letter === 'w') return this.#ask()
  }

  /** @param {number} index */
  #sortBy (index) {
    this.#sorts.set(this.#pane, index % this.#pane.columns.length)
  }

  /** @param {number} steps */
  #move (steps) {
    const { rows, index } = this.#rows()
    const row = rows[Math.min(rows.length - 1, Math.max(0, index + steps))]
    if (row !== undefined) this.#selected.set(this.#pane, idOf(row))
  }

  /** @returns {Action | undefined} */
  #ask () {
    const { rows, index } = this.#rows()
    const reason = rows.length === 0 ? undefined : reasonOf(rows[index])
    if (reason !== undefined) return { ask: reason }
    this.show('Waits, handles and blockers have a chain: choose one of them with a, h or b.')
  }

  /** @param {string | undefined} text @param {string | undefined} name @param {boolean} ctrl */
  #type (text, name, ctrl) {
    if (name === 'escape') this.#filter = ''
    if (name === 'escape' || name === 'return' || name === 'enter') this.#isTyping = false
    else if (name === 'backspace') this.#filter = [...this.#filter].slice(0, -1).join('')
    else if (text !== undefined && !ctrl && clean(text) === text) {
      this.#filter = (this.#filter + text).slice(0, MAX_FILTER)
    }
    return undefined
  }

  /**
   * Makes the lines of the screen.
   * @param {{ columns: number, rows: number, colours?: Colours }} size
   * @returns {string[]} one per row, none wider than the screen
   */
  lines ({ columns, rows, colours = noColours }) {
    const head = this.#head(columns, colours).slice(rows >= HIGH ? 0 : rows >= LOW ? -2 : -1)
    const room = Math.max(0, rows - head.length - 1)
    const text = this.#text
    const body = text === undefined ? this.#table(columns, room, colours) : this.#page(text, columns, room)
    const empty = Array(Math.max(0, room - body.length)).fill('')
    const lines = [...head, ...body.slice(0, room), ...empty, colours.dim(cut(this.#foot(), columns))]
    return lines.slice(-Math.max(1, rows))
  }

  /** @param {number} width @param {Colours} colours */
  #head (width, colours) {
    const frame = this.#frame()
    const { rows, index } = this.#rows()
    const route = this.#pane === panes[0] && this.#selected.has(panes[0]) ? rows[index]?.name : undefined
    const curve = curveLine(this.model.history.steps(this.#span.stepMs, STEPS), width, route)
    const tabs = panes.map((pane) => {
      const count = frame[pane.rows]?.length ?? 0
      const title = count === 0 ? pane.name : `${pane.name} ${count}`
      return pane === this.#pane ? `[${title}]` : ` ${title} `
    })
    const isWide = columnsOf(tabs.join(' ')) <= width
    const shown = isWide ? tabs : tabs.filter((tab) => tab.startsWith('['))
    const tabLine = shown.map((tab) => {
      const text = cut(tab, width)
      return tab.startsWith('[') ? colours.bold(text) : colours.dim(text)
    }).join(' ')
    return [
      colours.bold(titleLine(frame, width, this.name, this.#paused === undefined ? '' : 'paused')),
      cut(loadLine(frame), width),
      colours.cyan(curve),
      ...alertLines(frame).slice(0, 1).map((line) => colours.red(cut(line, width))),
      cut(requestLine(frame), width),
      tabLine
    ]
  }

  /** @param {number} width @param {number} room @param {Colours} colours */
  #table (width, room, colours) {
    const { rows, index } = this.#rows()
    const frame = this.#frame()
    if (rows.length === 0) {
      const isFiltered = (frame[this.#pane.rows]?.length ?? 0) > 0
      const reason = isFiltered ? `Nothing matches ${JSON.stringify(this.#filter)}.` : this.#pane.empty(frame)
      return [cut(reason, width)]
    }
    const visible = Math.max(1, room - 1)
    const start = Math.max(0, Math.min(index - Math.floor(visible / 2), rows.length - visible))
    const lines = tableLines(this.#pane, rows.slice(start, start + visible), {
      width: width - 2, sort: this.#sort(), marked: rows[index], colours
    })
    return lines.map((line, i) => `${i > 0 && start + i - 1 === index ? '› ' : '  '}${line}`)
  }

  /** @param {string[]} text @param {number} width @param {number} room */
  #page (text, width, room) {
    this.#scrolled = Math.max(0, Math.min(this.#scrolled, text.length - room))
    return text.slice(this.#scrolled, this.#scrolled + room).map((line) => cut(line, width))
  }

  #foot () {
    if (this.#isTyping) return `/${this.#filter}_  Enter keeps the filter, Esc clears it`
    if (this.#text !== undefined) return 'up, down scroll  any other key goes back'
    const filter = this.#filter === '' ? '' : `filter ${JSON.stringify(this.#filter)}  `
    return `${filter}span ${time(this.#span.ms)}  ${HINT}`
  }
}

/**
 * Returns the element some places after another, wrapping around.
 * @template T
 * @param {T[]} list
 * @param {T} element
 * @param {number} places
 */
function after (list, element, places) {
  return list[(list.indexOf(element) + places + list.length) % list.length]
}

module.exports = { Screen }
