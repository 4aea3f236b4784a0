'use strict'

// longstack why: what a running process has open and why, which requests are in flight, what is awaited and
// never settled.

const { setTimeout: sleep } = require('node:timers/promises')
const { DEFAULTS } = require('./commands')
const { quote, UsageError } = require('./flags')
const { asJson, colours, print } = require('./terminal')

/**
 * @typedef {import('../ask/processes').Asked} Asked
 * @typedef {import('../ask/thread').AskedThread} AskedThread
 * @typedef {import('./live-text').ProcessAnswer} ProcessAnswer
 * @typedef {import('../ask/target').Target} Target
 */

const CLEAR = '\x1b[H\x1b[2J\x1b[3J'

/** @type {import('./commands').Main} */
async function main (values, [word]) {
  const wish = wishOf(values)
  const { findTarget } = require('../ask/target')
  const { ask } = require('../ask/processes')
  const target = findTarget(word)
  const asked = await ask(target, { children: wish.children })
  try {
    return await answerTo(asked, target, wish)
  } finally {
    asked.close()
  }
}

/**
 * @typedef {object} Wish
 * @property {string[] | undefined} filter
 * @property {number} olderThanMs
 * @property {boolean} children
 * @property {number | undefined} watchMs
 * @property {boolean} json
 */

/** @param {Record<string, any>} values @returns {Wish} @throws {UsageError} */
function wishOf (values) {
  const seconds = (/** @type {string} */ name, /** @type {any} */ text, /** @type {number} */ min) => {
    if (/^\d*\.?\d+$/.test(text) && Number(text) >= min) return Number(text) * 1000
    throw new UsageError(`--${name} must be a number of seconds${min > 0 ? `, at least ${min}` : ''}. ` +
      `Received ${quote(text)}.`)
  }
  const { only, watch } = values
  return {
    filter: only === undefined ? undefined : checkFilter(only),
    olderThanMs: seconds('older-than', values['older-than'] ?? '0', 0),
    children: !values['no-children'],
    watchMs: watch && seconds('watch', watch === true ? String(DEFAULTS.watchSeconds) : watch, 0.1),
    json: values.json === true
  }
}

/** @param {string} text names with commas between them @returns {string[]} @throws {UsageError} */
function checkFilter (text) {
  const names = text.split(',').map((name) => name.trim())
  try {
    const { parseOptions, defaultOptions } = require('../options')
    return [...parseOptions({ filter: names }, defaultOptions()).filter]
  } catch (error) {
    throw new UsageError(/** @type {Error} */ (error).message)
  }
}

/**
 * @param {Asked} asked
 * @param {Target} target
 * @param {Wish} wish
 * @returns {Promise<1 | undefined>} 1: a process or a thread has not answered
 */
async function answerTo (asked, target, wish) {
  const { formatAnswer, jsonAnswer } = require('./live-text')
  const isScreen = wish.watchMs !== undefined && !wish.json && process.stdout.isTTY === true
  for (let isFirst = true; ; isFirst = false) {
    const answers = await Promise.all(asked.processes.map((one) => answerOf(one, target, wish, isFirst)))
    const present = answers.filter(({ threads, busy }) => threads.length > 0 || busy !== undefined)
    if (present.length === 0 && isFirst) throw endOf(asked)
    const all = { processes: present, refused: asked.refused, others: target.others, end: target.end?.text }
    if (wish.json) {
      const json = jsonAnswer(all)
      await print(wish.watchMs === undefined ? asJson(json) : `${JSON.stringify(json)}\n`)
    } else {
      const text = formatAnswer(all, colours())
      await print(isScreen ? `${CLEAR}${text}` : text)
    }
    if (wish.watchMs === undefined || present.length === 0) {
      return asked.refused.length > 0 || present.some(({ threads }) => threads.length === 0) ? 1 : undefined
    }
    await sleep(wish.watchMs)
    if (!wish.json && !isScreen) await print('\n')
  }
}

/** @param {Asked} asked of which nobody answers any more */
function endOf ({ processes, refused }) {
  const { RefusedError, endedSentence } = require('../ask/system')
  const sentences = refused.map(({ sentence }) => sentence)
  return new RefusedError([...sentences, ...processes.map(({ pid }) => endedSentence(pid))].join('\n'))
}

/**
 * @param {import('../ask/processes').AskedProcess} asked
 * @param {Target} target
 * @param {Wish} wish
 * @param {boolean} isFirst what it was busy with when it was asked is told once
 * @returns {Promise<ProcessAnswer>}
 */
async function answerOf ({ pid, threads, busy, busyMs }, target, wish, isFirst) {
  const alive = threads.filter((thread) => !thread.isClosed)
  const ofThread = async (/** @type {AskedThread} */ thread) => {
    try {
      return await threadAnswer(thread, target, wish)
    } catch (error) {
      if (!thread.isClosed) throw error
    }
  }
  const answers = await Promise.all(alive.map(ofThread))
  const present = answers.filter((answer) => answer !== undefined)
  return { pid, threads: present, ...(isFirst && { busy, busyMs }) }
}

/**
 * @param {AskedThread} thread
 * @param {Target} target
 * @param {Wish} wish
 * @returns {Promise<import('./live-text').ThreadAnswer>}
 */
async function threadAnswer (thread, { end }, { filter, olderThanMs }) {
  await thread.introduce()
  const { isHandleAt } = require('../ask/target')
  const { withHops } = require('./live-text')
  const all = withHops((await thread.call('open', { filter })) ?? [])
  const open = end === undefined ? all : all.filter((handle) => isHandleAt(handle, end))
  const isPartial = filter !== undefined || end !== undefined // what is asked for is handles
  const requests = isPartial ? undefined : await thread.call('requests')
  const pending = isPartial ? undefined : await thread.call('pending', { olderThanMs })
  return { facts: thread.facts, open, requests, pending }
}

module.exports = { checkFilter, main }
