'use strict'

// Blocking callbacks since they were read last, by the innermost frame of the program inside them.

const { changeState } = require('../listeners')

const MAX_PLACES = 50
const OTHER = '(other)'

/**
 * @typedef {import('../blocked/blocking-callback').BlockedEvent} BlockedEvent
 *
 * @typedef {object} BlockerFigures
 * @property {string} site `parse (/app/parse.js:12:3)`
 * @property {number} count
 * @property {number} ms of all
 * @property {number} worstMs
 * @property {string} stack of the worst: the frames inside it, then the hops that led to it
 */

/**
 * @param {import('../blocked/wanted').Observers} observers
 * @param {number | undefined} ms from how many on
 */
function createBlockerFigures (observers, ms) {
  const { listeners } = observers
  /** @type {Map<string, BlockerFigures>} */
  let places = new Map()
  if (ms !== undefined) wishes.add(ms)
  listeners.add(note)
  apply(observers)

  /** @param {BlockedEvent} event */
  function note ({ ms, stillRunning, frames, stack }) {
    if (stillRunning) return // it is reported again when it has ended
    const place = placeOf(frames, stack)
    const site = places.has(place) || places.size < MAX_PLACES ? place : OTHER
    const figures = places.get(site) ?? { site, count: 0, ms: 0, worstMs: 0, stack }
    places.set(site, figures)
    figures.count++
    figures.ms += ms
    if (ms < figures.worstMs) return
    figures.worstMs = ms
    figures.stack = stack
  }

  return {
    /** @returns {BlockerFigures[]} */
    read () {
      const figures = [...places.values()]
      places = new Map()
      return figures
    },

    stop () {
      listeners.delete(note)
      if (ms !== undefined) wishes.remove(ms)
      apply(observers)
    }
  }
}

/** Thresholds that are wished for: those of several commands at once, of which the lowest is in force. */
const wishes = {
  /** @type {number[]} */
  list: [],

  /** @param {number} ms */
  add (ms) { wishes.list.push(ms) },

  /** @param {number} ms */
  remove (ms) { wishes.list.splice(wishes.list.indexOf(ms), 1) }
}

/** @param {import('../blocked/wanted').Observers} observers */
function apply (observers) {
  const ms = wishes.list.length === 0 ? undefined : Math.min(...wishes.list)
  if (observers.ms === ms) return
  observers.ms = ms
  changeState(observers.apply)
}

/** @param {BlockedEvent['frames']} frames @param {string} stack */
function placeOf (frames, stack) {
  const frame = frames.find(({ kind }) => kind === 'user') ?? frames[0]
  if (frame === undefined) return /^ {4}at (.*)/.exec(stack)?.[1] ?? '(unknown)'
  const { functionName = '<anonymous>', fileName, lineNumber, columnNumber } = frame
  return `${functionName} (${fileName}:${lineNumber}:${columnNumber})`
}

module.exports = { createBlockerFigures }
