'use strict'

// Describes the machine used for a measurement, and pins processes to its CPUs.

const { spawnSync } = require('node:child_process')
const os = require('node:os')

/**
 * @param {string} command
 * @param {string[]} args
 * @param {number} [timeout] ms
 * @returns {string | undefined} output, undefined if it fails
 */
function output (command, args, timeout = 10_000) {
  const { status, stdout, error } = spawnSync(command, args, { encoding: 'utf8', timeout })
  return error === undefined && status === 0 ? stdout : undefined
}

/**
 * Lists the CPUs that this process may use, as reported by taskset.
 * @returns {number[]} empty without taskset
 */
function usableCpus () {
  const list = output('taskset', ['-cp', String(process.pid)])?.split(':').at(-1)?.trim()
  if (list === undefined) return []
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, i) => first + i)
  })
}

/**
 * @typedef {object} Pins
 * @property {string[]} subject prefix of a measured command
 * @property {string[]} load prefix of the command of a load generator
 */

/**
 * Pins subjects to one CPU and generators to another.
 * @returns {Pins | undefined} undefined without taskset
 */
function pins () {
  const [first, second = first] = usableCpus()
  if (first === undefined) return undefined
  return { subject: ['taskset', '-c', String(first)], load: ['taskset', '-c', String(second)] }
}

/** Describes the machine for readers of the figures. */
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
