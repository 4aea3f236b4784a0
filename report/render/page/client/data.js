'use strict'

// The data in the page, and what all of its parts ask of them.

/* global document */

const { foreign, h } = require('./dom')
const { unpack } = require('./pack')

/** @typedef {import('../data').PageRun} PageRun */

/** @type {import('../data').PageData} */
const data = unpack(document.getElementById('data')?.textContent ?? '')
const { runs } = data
const labels = runs.map((run) => run.label)
const isComparison = runs.length > 1

/** @template T @param {T[]} list @param {(item: T) => number | undefined} value */
const total = (list, value) => list.reduce((sum, item) => sum + (value(item) ?? 0), 0)

/** Ends a caption with the run, if there are two. @param {string} preposition @param {PageRun} run */
const ofRun = (preposition, run) => isComparison ? ` ${preposition} ${run.label}` : ''

/** Makes the heading of a run, if there are two. @param {PageRun} run */
function heading (run) {
  const swatch = h('span', { class: `swatch run-${runs.indexOf(run)}` })
  return isComparison && h('h3', { class: 'run-title' }, swatch, foreign(run.label))
}

module.exports = { data, heading, isComparison, labels, ofRun, runs, total }
