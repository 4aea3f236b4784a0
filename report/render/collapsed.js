'use strict'

// Renders a profile as collapsed stacks: a line for each, frames from the outermost inwards, then µs.

const { clean } = require('../../lib/text')
const { stacksOf } = require('./profile-stacks')

/** @typedef {import('./profile-stacks').Stack} Stack */

/** By what a value is called. @satisfies {Record<string, (stack: Stack) => number>} */
const values = {
  ran: ({ ranMs }) => ranMs,
  waited: ({ waitedMs }) => waitedMs,
  cpu: ({ cpuMs }) => cpuMs
}

/**
 * @param {import('./profile-stacks').Profile} profile
 * @param {keyof typeof values} [value] of a stack
 * @returns {string} one line for each stack, none for those whose value is 0
 */
function collapsed (profile, value = 'ran') {
  /** @type {Map<string, number>} */
  const sums = new Map()
  for (const stack of stacksOf(profile)) {
    const line = [...stack.frames].reverse().map(plain).join(';')
    sums.set(line, (sums.get(line) ?? 0) + values[value](stack))
  }
  const lines = []
  for (const [line, ms] of sums) {
    const count = Math.round(ms * 1000)
    if (count > 0) lines.push(`${line} ${count}\n`)
  }
  return lines.join('')
}

/** Makes a name fit for a line: no separators, no control or bidi characters. @param {string} name */
function plain (name) {
  return clean(name).replaceAll(';', '?')
}

module.exports = { collapsed, values }
