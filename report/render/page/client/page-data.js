'use strict'

// The data in the page, and what all of its parts ask of them.

/* global document */

/**
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {import('../rows').PageRow} PageRow
 * @typedef {import('../rows').PageRoute} PageRoute
 */

/** @type {import('../data').PageData} */
const data = JSON.parse(document.getElementById('data')?.textContent ?? '')
const { runs, stacks } = data
const labels = runs.map((run) => run.label)
const isComparison = runs.length > 1

/** @param {Array<number | undefined>} values */
const total = (values) => values.reduce((/** @type {number} */ sum, value) => sum + (value ?? 0), 0)

/** @param {{ stack?: number }} row */
const stackOf = (row) => (row.stack === undefined ? undefined : stacks[row.stack])

/** Ends a caption with the run, if there are two. @param {string} preposition @param {PageRun} run */
const ofRun = (preposition, run) => isComparison ? ` ${preposition} ${run.label}` : ''

module.exports = { data, runs, stacks, labels, isComparison, total, stackOf, ofRun }
