'use strict'

// What the figures were taken on, and what the machine has that helps to take them.

const { spawnSync } = require('node:child_process')
const os = require('node:os')

/**
 * @param {string} command
 * @param {string[]} args
 * @param {number} [timeout] ms
 * @returns {string | undefined} its output; nothing where it does not run
 */
function output (command, args, timeout = 10_000) {
  const { status, stdout, error } = spawnSync(command, args, { encoding: 'utf8', timeout })
  return error === undefined && status === 0 ? stdout : undefined
}

/**
 * The processors that this process may use, as taskset knows them.
 * @returns {number[]} none where there is no taskset
 */
function processors () {
  const list = output('taskset', ['-cp', String(process.pid)])?.split(':').at(-1)?.trim()
  if (list === undefined) return []
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, i) => first + i)
  })
}

/**
 * @typedef {object} Pins
 * @property {string[]} subject what comes before a measured command
 * @property {string[]} load what comes before the load generator
 */

/** The subject on one processor, the generator on another. @returns {Pins | undefined} nothing without taskset */
function pins () {
  const [first, second = first] = processors()
  if (first === undefined) return undefined
  return { subject: ['taskset', '-c', String(first)], load: ['taskset', '-c', String(second)] }
}

/** What a reader needs to know of the machine. */
function describe () {
  const cpus = os.cpus()
  return {
    cpu: (cpus[0]?.model ?? 'unknown').trim(),
    processors: cpus.length,
    memory: os.totalmem(),
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    loadBefore: os.loadavg()[0]
  }
}

module.exports = { pins, output, describe }
