'use strict'

// What the sections of a text report share: colours, width, short names of frames, how much is printed.

const { allOf } = require('../aggregate/lists')
const { createRunFrameNames } = require('./frame-names')
const { grouped, noColours, word } = require('./text-parts')
const { glued, prose, wrap } = require('./wrap')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('./text-parts').Colours} Colours
 *
 * @typedef {object} TextOptions
 * @property {Colours} [colours]
 * @property {number} [width] of the terminal; default 80
 * @property {number} [top] max number of routes, sites, blockers, failures and requests
 * @property {boolean} [full] print quartiles, densities, boxes, all waits, and stacks
 * @property {'all' | 'slowest'} [tree] print the tree of chains instead: of all requests, or the slowest 1 %
 * @property {string} [route] the only route, with `*` for anything
 *
 * @typedef {object} Context
 * @property {Colours} colours
 * @property {number} width
 * @property {boolean} isFull
 * @property {number | undefined} top
 * @property {(lengths: [short: number, full: number]) => number} max of items that are printed
 * @property {(frame: string) => string} frame short name of a frame, in one piece
 * @property {(text: string, indent?: string, hanging?: string) => string[]} paragraph wraps words
 */

const [MIN_WIDTH, MAX_WIDTH] = [40, 120]
const MAX_FRAME_CHARS = 200

/**
 * @param {Model[]} models
 * @param {TextOptions} options
 * @returns {Context}
 */
function createContext (models, { colours = noColours, width = 80, full: isFull = false, top }) {
  const bounded = Math.max(MIN_WIDTH, Math.min(width, MAX_WIDTH))
  const names = createRunFrameNames(models.map(framesOf))
  return {
    colours,
    width: bounded,
    isFull,
    top,
    max: ([short, whole]) => top ?? (isFull ? whole : short),
    frame: (frame) => glued(word(names(frame), MAX_FRAME_CHARS)),
    paragraph: (text, indent, hanging) => wrap(text, bounded, indent, hanging)
  }
}

/** @param {Model} model @returns {string[]} */
function framesOf ({ routes, slowest, failures, verdict, blockers, tree, slowTree }) {
  const sites = routes.flatMap((route) => route.sites)
  const waits = slowest.flatMap(({ waits, delayedBy }) => [...waits, ...delayedBy])
  const places = [...sites, ...waits, ...failures, ...verdict, ...blockers]
  const frames = [...sites.flatMap(({ callers }) => callers), ...places.map(({ at: frame }) => frame)]
  return [
    ...frames.filter((frame) => frame !== undefined),
    ...allOf(tree, slowTree).filter(({ kind }) => kind === 'frame').map(({ name }) => name)
  ]
}

/** Makes a sentence from a file safe for a terminal, and keeps figures together. @param {string} sentence */
function sentenceOf (sentence) {
  return prose(word(sentence, 1000))
}

/**
 * Lists items below a title, and counts those that are not printed.
 * @template T
 * @param {string} title
 * @param {T[]} items
 * @param {number} max
 * @param {(item: T, index: number) => string[]} linesOf
 * @param {number} [count] of all
 */
function section (title, items, max, linesOf, count = items.length) {
  if (items.length === 0) return []
  const hidden = count - Math.min(max, items.length)
  const more = hidden > 0 ? [`  … ${grouped(hidden)} more`] : []
  return [title, ...items.slice(0, max).flatMap(linesOf), ...more]
}

/** Joins the parts of a report that are not empty. @param {string[][]} parts */
function joined (parts) {
  return parts.filter((part) => part.length > 0).map((part) => part.join('\n')).join('\n\n') + '\n'
}

module.exports = { MAX_FRAME_CHARS, createContext, joined, section, sentenceOf }
