'use strict'

// What a reader has selected of the page: a range of time, a text, a status. Parts of the page follow it, and
// each lists what it cannot be filtered by.

const { h } = require('./dom')

/**
 * @typedef {import('../data').PageRun} PageRun
 *
 * @typedef {object} Selection
 * @property {[from: number, to: number] | undefined} range ms from the start of a run; undefined for all
 * @property {string} text in lower case, part of the name of a route or of a trace id; empty for all
 * @property {'all' | 'failed' | 'ok'} status
 *
 * @typedef {ReturnType<typeof createFilter>} Filter
 */

const NAMES = { range: 'the range of time', text: 'the text', status: 'the status' }

function createFilter () {
  /** @type {Selection} */
  let selection = { range: undefined, text: '', status: 'all' }
  /** @type {Array<(selection: Selection) => void>} */
  const listeners = []
  return {
    get selection () { return selection },

    /** Changes some of it. @param {Partial<Selection>} changes */
    set (changes) {
      selection = { ...selection, ...changes }
      for (const listener of listeners) listener(selection)
    },

    /** Calls a listener now, and after each change. @param {(selection: Selection) => void} listener */
    follow (listener) {
      listeners.push(listener)
      listener(selection)
    },

    /**
     * Makes a note that is visible while something is selected that a part of the page cannot follow.
     * @param {string} what is not filtered, begin of a sentence: "The flame graph has"
     * @param {Array<keyof NAMES>} ignored
     */
    noteOf (what, ignored) {
      const note = h('p', { class: 'note unfiltered', hidden: true })
      this.follow((now) => {
        const names = ignored.filter((name) => isSet(now, name)).map((name) => NAMES[name])
        note.hidden = names.length === 0
        note.textContent = `${what} not filtered by ${names.join(' or ')}.`
      })
      return note
    }
  }
}

/** @param {Selection} selection @param {keyof Selection} name */
function isSet ({ range, text, status }, name) {
  return { range: range !== undefined, text: text !== '', status: status !== 'all' }[name]
}

/** @param {Selection} selection */
function isActive (selection) {
  return isSet(selection, 'range') || isSet(selection, 'text') || isSet(selection, 'status')
}

/**
 * Returns whether any of some texts contains the selected one.
 * @param {Selection} selection
 * @param {Array<string | undefined>} texts
 */
function matchesText ({ text }, ...texts) {
  return text === '' || texts.some((candidate) => candidate?.toLowerCase().includes(text))
}

/** @param {Selection} selection @param {string | undefined} code */
function matchesStatus ({ status }, code) {
  return status === 'all' || (status === 'failed') === (code === 'ERROR')
}

/**
 * Returns whether a moment is in the selected range of a run.
 * @param {Selection} selection
 * @param {PageRun} run
 * @param {number | undefined} unixMs
 */
function isInRange ({ range }, { series }, unixMs) {
  if (range === undefined || series === undefined) return true
  const ms = Number(unixMs) - series.fromUnixMs
  return ms >= range[0] && ms < range[1]
}

/**
 * Returns the selected buckets of a run: the first one and the one after the last.
 * @param {Selection} selection
 * @param {PageRun} run
 * @returns {[number, number] | undefined} undefined for all
 */
function bucketsOf ({ range }, { series }) {
  if (range === undefined || series === undefined) return undefined
  const [from, to] = range.map((ms) => Math.max(0, Math.min(series.buckets, Math.round(ms / series.stepMs))))
  return [from, to]
}

/** @param {ArrayLike<number>} values @param {[number, number]} buckets */
function sumIn (values, [from, to]) {
  let sum = 0
  for (let i = from; i < to; i++) sum += values[i]
  return sum
}

/**
 * Adds up the figures of the selected buckets.
 * @param {import('../series').Sparse} sparse bucket, figures, bucket, figures …
 * @param {number} width figures of a bucket
 * @param {[number, number]} buckets
 * @returns {number[]}
 */
function sparseSums (sparse, width, [from, to]) {
  const sums = Array(width).fill(0)
  for (let i = 0; i < sparse.length; i += width + 1) {
    if (sparse[i] < from || sparse[i] >= to) continue
    for (let j = 0; j < width; j++) sums[j] += sparse[i + 1 + j]
  }
  return sums
}

module.exports = {
  bucketsOf, createFilter, isActive, isInRange, matchesStatus, matchesText, sparseSums, sumIn
}
