'use strict'

// The screen of longstack top: what is chosen, what keys do, and the lines of a frame. Knows no terminal.

const { clean } = require('../text')
const { noColours, time } = require('../../report/render/text-parts')
const { columnsOf } = require('../../report/render/wrap')
const { curveLine, cut, loadLine, requestLine, tableLines, titleLine } = require('./lines')
const { panes, rowsOf } = require('./panes')

/**
 * @typedef {import('./model').Frame} Frame
 * @typedef {import('./model').Model} Model
 * @typedef {import('../../report/render/text-parts').Colours} Colours
 * @typedef {{ name?: string, ctrl?: boolean, shift?: boolean }} Key as node:readline reports it
 * @typedef {{ quit: true } | { ask: import('./panes').Reason }} Action what a key demands
 */

/** Spans that figures of routes can cover, and the steps of the curves beside them. */
const SPANS = [
  { ms: 2_000, stepMs: 1_000 },
  { ms: 60_000, stepMs: 1_000 },
  { ms: 600_000, stepMs: 10_000 },
  { ms: 3_600_000, stepMs: 60_000 }
]
const STEPS = 60 // of a curve
const MAX_FILTER = 60 // characters
const HIGH = 12 // rows of a screen that has room for the whole head
const LOW = 8 // for its last two lines
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
  #pane = 0
  #sorts = panes.map(({ sort }) => sort)
  /** row of each pane, by its id @type {Array<string | undefined>} */
  #selected = panes.map(() => undefined)
  #span = 0
  #filter = ''
  #isTyping = false
  /** text over the table; undefined: the table is shown @type {string[] | undefined} */
  #text
  #scrolled = 0
  /** what is shown while it is paused @type {Frame | undefined} */
  #paused

  /**
   * @param {Model} model
   * @param {{ name: string, sort?: number, filter?: string }} options name of what is observed
   */
  constructor (model, { name, sort, filter = '' }) {
    this.model = model
    this.name = name
    this.#filter = filter
    if (sort !== undefined) this.#sorts[0] = sort
  }

  /** Shows text over the table: an answer. @param {string} text */
  show (text) {
    this.#text = text.split('\n').map(clean)
    this.#scrolled = 0
  }

  #frame () {
    return this.#paused ?? this.model.frame(SPANS[this.#span].ms)
  }

  #rows () {
    const choice = { sort: this.#sorts[this.#pane], filter: this.#filter }
    return rowsOf(panes[this.#pane], this.#frame(), choice)
  }

  /** @param {any[]} rows @returns {number} of the selected row: one that is gone has made room for another */
  #selectedIndex (rows) {
    const id = this.#selected[this.#pane]
    return Math.max(0, rows.findIndex((row) => panes[this.#pane].id(row) === id))
  }

  /**
   * Does what a key demands.
   * @param {string | undefined} text that the key stands for
   * @param {Key} key
   * @returns {Action | undefined}
   */
  press (text, { name, ctrl = false, shift = false }) {
    if (ctrl && (name === 'c' || name === 'd')) return { quit: true }
    if (this.#isTyping) return this.#type(text, name, ctrl)
    if (this.#text !== undefined) return this.#read(text, name)
    const letter = ctrl ? undefined : text
    if (letter === 'q') return { quit: true }
    if (name === 'escape') this.#filter = ''
    else if (name === 'tab') this.#choose(this.#pane + (shift ? panes.length - 1 : 1))
    else if (letter === '/') this.#isTyping = true
    else if (letter === 'p' || letter === ' ') this.#pause()
    else if (letter === 't') this.#span = (this.#span + 1) % SPANS.length
    else if (letter === '?') this.show(HELP.join('\n'))
    else if (letter === 's' || name === 'right') this.#sortBy(this.#sorts[this.#pane] + 1)
    else if (name === 'left') this.#sortBy(this.#sorts[this.#pane] + panes[this.#pane].columns.length - 1)
    else if (/^[1-9]$/.test(letter ?? '')) this.#sortBy(Number(letter) - 1, true)
    else if (name === 'up' || name === 'down') this.#move(name === 'up' ? -1 : 1)
    else if (name === 'pageup' || name === 'pagedown') this.#move(name === 'pageup' ? -10 : 10)
    else if (name === 'return' || name === 'enter' || letter === 'w') return this.#ask()
    else {
      const index = panes.findIndex((pane) => pane.letter === letter)
      if (index !== -1) this.#choose(index)
    }
    return undefined
  }

  #pause () {
    this.#paused = this.#paused === undefined ? this.#frame() : undefined
  }

  /** @param {number} index */
  #choose (index) {
    this.#pane = index % panes.length
  }

  /** @param {number} index @param {boolean} [isExact] one that there is not is no choice */
  #sortBy (index, isExact = false) {
    const { length } = panes[this.#pane].columns
    if (!isExact || index < length) this.#sorts[this.#pane] = index % length
  }

  /** @param {number} steps */
  #move (steps) {
    const rows = this.#rows()
    if (rows.length === 0) return
    const index = Math.min(rows.length - 1, Math.max(0, this.#selectedIndex(rows) + steps))
    this.#selected[this.#pane] = panes[this.#pane].id(rows[index])
  }

  /** @returns {Action | undefined} */
  #ask () {
    const rows = this.#rows()
    const row = rows[this.#selectedIndex(rows)]
    const reason = row === undefined ? undefined : panes[this.#pane].why(row)
    if (reason !== undefined) return { ask: reason }
    this.show('Waits, handles and blockers have a chain: choose one of them with a, h or b.')
  }

  /** @param {string | undefined} text @param {string | undefined} name @param {boolean} ctrl */
  #type (text, name, ctrl) {
    if (name === 'escape') {
      this.#filter = ''
      this.#isTyping = false
    } else if (name === 'return' || name === 'enter') {
      this.#isTyping = false
    } else if (name === 'backspace') {
      this.#filter = [...this.#filter].slice(0, -1).join('')
    } else if (text !== undefined && !ctrl && clean(text) === text) {
      this.#filter = (this.#filter + text).slice(0, MAX_FILTER)
    }
    return undefined
  }

  /** @param {string | undefined} text @param {string | undefined} name @returns {Action | undefined} */
  #read (text, name) {
    if (name === 'up') this.#scrolled--
    else if (name === 'down') this.#scrolled++
    else if (name === 'pageup') this.#scrolled -= 10
    else if (name === 'pagedown') this.#scrolled += 10
    else this.#text = undefined
    return text === 'q' ? { quit: true } : undefined
  }

  /**
   * Makes the lines of the screen.
   * @param {{ columns: number, rows: number, colours?: Colours }} size
   * @returns {string[]} as many as there are rows, none wider than the screen
   */
  lines ({ columns, rows, colours = noColours }) {
    const frame = this.#frame()
    const head = this.#head(frame, columns, colours).slice(rows >= HIGH ? 0 : rows >= LOW ? -2 : -1)
    const room = Math.max(0, rows - head.length - 1)
    const isTable = this.#text === undefined
    const body = isTable ? this.#table(frame, columns, room, colours) : this.#page(columns, room)
    const filled = [...body, ...Array(Math.max(0, room - body.length)).fill('')].slice(0, room)
    return [...head, ...filled, this.#foot(columns, colours)].slice(-Math.max(1, rows))
  }

  /** @param {Frame} frame @param {number} width @param {Colours} colours */
  #head (frame, width, colours) {
    const { stepMs } = SPANS[this.#span]
    const rows = panes[this.#pane].name === 'Routes' ? this.#rows() : []
    const route = this.#selected[0] === undefined ? undefined : rows[this.#selectedIndex(rows)]?.name
    const curve = curveLine(this.model.history.steps(stepMs, STEPS), width, route)
    const tabs = panes.map((pane, i) => {
      const title = pane.rows(frame).length === 0 ? pane.name : `${pane.name} ${pane.rows(frame).length}`
      return { title: i === this.#pane ? `[${title}]` : ` ${title} `, isChosen: i === this.#pane }
    })
    const hasRoom = columnsOf(tabs.map(({ title }) => title).join(' ')) <= width
    const tabLine = hasRoom
      ? tabs.map(({ title, isChosen }) => isChosen ? colours.bold(title) : colours.dim(title)).join(' ')
      : cut(tabs.filter(({ isChosen }) => isChosen).map(({ title }) => title).join(''), width)
    return [
      colours.bold(titleLine(frame, width, this.name, this.#paused === undefined ? '' : 'paused')),
      cut(loadLine(frame), width),
      colours.cyan(curve),
      cut(requestLine(frame), width),
      tabLine
    ]
  }

  /** @param {Frame} frame @param {number} width @param {number} room @param {Colours} colours */
  #table (frame, width, room, colours) {
    const pane = panes[this.#pane]
    const rows = this.#rows()
    if (rows.length === 0) {
      const hasRows = pane.rows(frame).length > 0
      return [cut(hasRows ? `Nothing matches ${JSON.stringify(this.#filter)}.` : pane.empty(frame), width)]
    }
    const index = this.#selectedIndex(rows)
    const visible = Math.max(1, room - 1)
    const start = Math.max(0, Math.min(index - Math.floor(visible / 2), rows.length - visible))
    const lines = tableLines(pane, rows.slice(start, start + visible), {
      width: width - 2, sort: this.#sorts[this.#pane], marked: rows[index], colours
    })
    return lines.map((line, i) => `${i > 0 && start + i - 1 === index ? '› ' : '  '}${line}`)
  }

  /** @param {number} width @param {number} room */
  #page (width, room) {
    const text = this.#text ?? []
    this.#scrolled = Math.max(0, Math.min(this.#scrolled, text.length - room))
    return text.slice(this.#scrolled, this.#scrolled + room).map((line) => cut(line, width))
  }

  /** @param {number} width @param {Colours} colours */
  #foot (width, colours) {
    if (this.#isTyping) return cut(`/${this.#filter}_  Enter keeps the filter, Esc clears it`, width)
    const filter = this.#filter === '' ? '' : `filter ${JSON.stringify(this.#filter)}  `
    if (this.#text !== undefined) return colours.dim(cut('up, down scroll  any other key goes back', width))
    return colours.dim(cut(`${filter}span ${time(SPANS[this.#span].ms)}  ${HINT}`, width))
  }
}

module.exports = { Screen }
