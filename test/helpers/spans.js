'use strict'

// Runs programs that make spans, and reads their time breakdown.

const path = require('node:path')
const { node, program, register, root } = require('./run')

const prelude = path.join(root, 'test', 'fixtures', 'spans', 'prelude.js')
const head = `'use strict'
const { trace, busy, wait, looked, records, tell } = require(${JSON.stringify(prelude)})
`

/**
 * @typedef {import('../../lib/encoding/span-form').SpanRecord} SpanRecord
 *
 * @typedef {object} Times ms
 * @property {number} duration
 * @property {number} run
 * @property {Record<string, number>} wait
 * @property {number} waited
 * @property {number} delayed
 * @property {number} most ms, larger if that is a range
 * @property {Array<{ spanId?: string, name?: string, ms: number, max?: number, at?: string }>} by
 * @property {Wait[]} waits
 *
 * @typedef {{ ms: number, count: number, delayed?: number, delayed_max?: number } & Site} Wait
 * @typedef {{ at?: string, until?: string, label?: string }} Site
 */

/**
 * Runs a program that calls `tell()` at its end.
 * @param {string} source may use the names of the prelude
 * @param {{ env?: Record<string, string>, args?: string[], timeout?: number }} [options]
 * @returns {Promise<any>}
 */
async function told (source, options = {}) {
  const { stdout, stderr, code } = await program(head + source, options)
  if (code !== 0 || stderr !== '') throw new Error(`${code}: ${stderr}${stdout}`)
  const result = JSON.parse(stdout)
  if (result.fault !== undefined) throw new Error(result.fault)
  return {
    ...result,
    span: (/** @type {string} */ name) => one(result.records, name),
    times: (/** @type {string} */ name) => timesOf(one(result.records, name))
  }
}

/** @param {SpanRecord[]} records @param {string} name */
function one (records, name) {
  const found = records.filter((record) => record.name === name)
  if (found.length !== 1) throw new Error(`${found.length} spans are called ${name}, of ${records.map((record) => record.name).join()}`)
  return found[0]
}

/** @param {SpanRecord} record @returns {Times} */
function timesOf ({ startTimeUnixNano, endTimeUnixNano, attributes }) {
  return {
    duration: Number(BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1e6,
    run: attributes['longstack.run_ms'],
    wait: attributes['longstack.wait_ms'],
    waited: attributes['longstack.waited_ms'],
    delayed: attributes['longstack.delayed_ms'],
    most: attributes['longstack.delayed_max_ms'] ?? attributes['longstack.delayed_ms'],
    by: attributes['longstack.delayed_by'],
    waits: attributes['longstack.waits']
  }
}

/** Checks every span. @param {import('ava').ExecutionContext} t @param {SpanRecord} record */
function sound (t, record) {
  const { duration, run, wait, waited, delayed, by, waits } = timesOf(record)
  const near = (/** @type {number} */ a, /** @type {number} */ b) => Math.abs(a - b) < 0.01
  const text = `${record.name} ${JSON.stringify(record.attributes)}`
  t.true(near(run + waited + delayed, duration), `the parts add up: ${duration} ${text}`)
  const sums = Object.values(wait)
  const listed = waits.map(({ ms }) => ms)
  const total = (/** @type {number[]} */ lengths) => lengths.reduce((sum, ms) => sum + ms, 0)
  for (const ms of [duration, run, waited, delayed, ...sums, ...listed]) t.true(ms >= 0, text)
  t.true(Math.abs(total(sums) - waited) < 0.01 * (sums.length + 1), `the waits of subsystems are all: ${text}`)
  t.true(total(listed) < waited + 0.01 * (waits.length + 1), `no more is listed than waited: ${text}`)
  const lengths = waits.map(({ ms, delayed: meanwhile = 0 }) => ms + meanwhile)
  const areOrdered = lengths.every((ms, i) => i === 0 || ms <= lengths[i - 1] + 0.0015)
  t.true(areOrdered, `the longest wait is first: ${text}`)
  t.true(by.reduce((sum, { ms }) => sum + ms, 0) <= delayed + 0.01, `nobody delays more than all: ${text}`)
  const most = by.map(({ ms, max = ms }) => max)
  t.true(most.every((ms, at) => at === 0 || ms <= most[at - 1] + 1), `the worst is first: ${text}`)
  t.true(by.every(({ spanId }) => spanId !== record.spanId), `nothing delays itself: ${text}`)
}

/**
 * Compares with Node's figures of the event loop: no part of a wait counts as run or delay. Time that other
 * code ran while an operation was pending also counts as a wait.
 * @param {import('ava').ExecutionContext} t
 * @param {any} result of told
 * @param {string} name of a span made by looked()
 */
function asNodeSays (t, { loops, times }, name) {
  const { waited } = times(name)
  t.true(waited >= loops[name].idle - 0.5, `${name}: ${waited} of ${loops[name].idle}`)
}

module.exports = { told, timesOf, sound, asNodeSays, one, head, node, program, register, root }
