'use strict'

// What is certainly at fault, first of all: each finding with its advice and links to where it shows.

const { badge } = require('./columns')
const { foreign, h } = require('./dom')
const { isNumber, percent, time } = require('./format')
const { isComparison, labels, runs } = require('./page-data')
const { finding } = require('./overview')

/** @typedef {import('../findings').PageFinding} PageFinding */

/** @type {Record<string, string>} */
const rules = {
  blocker: 'blocked event loop',
  pool: 'pool is the limit',
  sequence: 'one after the other',
  dependency: 'slow dependency',
  interval: 'leaked interval',
  delayer: 'delays others'
}

/**
 * @param {(found: PageFinding) => Array<[text: string, open: () => void]>} linksOf
 * @returns {any} an HTMLElement or undefined
 */
function createVerdict (linksOf) {
  const [{ verdict, tree }] = runs
  if (verdict.length === 0) {
    const none = tree !== undefined && h('p', { class: 'note' }, 'No rule of the verdict is sure of a fault.')
    const worst = finding()
    return worst || none ? h('div', { class: 'verdict' }, worst, none) : undefined
  }
  const title = verdict.length === 1 ? 'What to change' : `What to change: ${verdict.length} findings`
  const inRun = isComparison && h('small', {}, ' in ', foreign(labels[0]))
  return h('section', { class: 'verdict', id: 'verdict' }, h('h2', {}, title, inRun),
    h('ol', { class: 'findings' }, verdict.map((found) => item(found, linksOf(found)))))
}

/** @param {PageFinding} found @param {Array<[string, () => void]>} links */
function item ({ rule, sentence, advice, figures: { lostMs, share } }, links) {
  const lost = isNumber(lostMs) && lostMs > 0 && `explains ${time(lostMs)}`
  const part = isNumber(share) && share > 0 && `${percent(share)} of the time`
  const remark = [lost, part].filter(Boolean).join(', ')
  return h('li', {},
    h('p', { class: 'rule' }, badge(rules[rule] ?? rule), h('small', {}, remark)),
    h('p', { class: 'sentence' }, foreign(sentence)),
    advice !== '' && h('p', { class: 'advice' }, foreign(sentenceOf(advice))),
    links.length > 0 && h('p', { class: 'see' }, links.map(([text, open]) =>
      h('button', { type: 'button', class: 'link', on: { click: open } }, text))))
}

/** Begins with a capital letter and ends with a full stop. @param {string} text */
function sentenceOf (text) {
  return `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`
}

module.exports = { createVerdict }
