'use strict'

// Raw TCP against net against http: the cost of each layer for the same constant answer, the cost of tracing
// on each, and closures compared with hoisted callbacks. After Trevor Norris, 2013: his programs for this are
// known only from their description; "NodeDay 2014" (slides, 2014) has the two closest ones.
//
//     node bench/articles/02-tcp-net-http --answers             prints the bytes on the wire
//     node bench/articles/02-tcp-net-http --json [--quick]      measures the claims and tables once

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { obey, start, load, end, median, digits, main } = require('../common/measure')
const { answers } = require('./answers')
const claims = require('./claims.json')
const { countOwn, countAll, format } = require('./resources')
const { LAYERS, STYLES, openServer } = require('./servers')

// `warm` counts requests, `limit` is ms per round. Spans are compiled late, after some 10,000 requests
const FULL = { connections: 32, warm: 30_000, limit: 300, rounds: 6 }
const QUICK = { connections: 4, warm: 50, limit: 10, rounds: 1 }
const COUNTED = { full: { connections: 40, requests: 2_000 }, quick: { connections: 5, requests: 50 } }

/** The layer and style on each side of a claim. @type {Record<string, [string[], string[]]>} */
const sides = {
  'net-over-raw': [['raw', 'hoisted'], ['net', 'hoisted']],
  'http-over-net': [['net', 'hoisted'], ['http', 'hoisted']],
  ...Object.fromEntries(LAYERS.map((layer) => [`closures-${layer}`, STYLES.map((style) => [layer, style])]))
}

/** Lists all subjects: three layers, two styles, bare and traced; http also with spans. */
function createSubjects (/** @type {string} */ directory) {
  const servers = LAYERS.flatMap((layer) => STYLES.map((style) => ({ layer, style })))
  const states = [false, true].flatMap((traced) => servers.map((server) => ({ ...server, traced })))
  const env = { LONGSTACK_SPANS: path.join(directory, 'spans.jsonl') }
  return [
    ...states.map((state) => ({ ...state, spans: false, env: {} })),
    { layer: 'http', style: 'hoisted', traced: true, spans: true, env }
  ].map((subject) => ({ ...subject, child: undefined, rates: [], costs: [] }))
}

/**
 * Measures all servers. They run at the same time and are loaded one by one, in both directions, so that
 * other load on the machine affects all of them.
 * @param {typeof FULL} amounts
 */
async function measureServers ({ connections, warm, limit, rounds }) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'tcp-net-http-'))
  const subjects = createSubjects(directory)
  try {
    for (const subject of subjects) {
      subject.child = await start(__filename, ['serve', subject.layer, subject.style], subject)
      await load({ port: subject.child.port, connections, requests: warm })
    }
    for (let round = 0; round < rounds; round++) {
      for (const { child, costs, rates } of round % 2 === 0 ? subjects : subjects.toReversed()) {
        const before = await child.cpu()
        const { units, rate } = await load({ port: child.port, connections, limit })
        costs.push((await child.cpu() - before) / units)
        rates.push(rate)
      }
    }
    return subjects.map((subject) => {
      return { ...subject, rate: median(subject.rates), cpu: median(subject.costs) }
    })
  } finally {
    for (const { child } of subjects) await child?.end()
    await end()
    fs.rmSync(directory, { recursive: true })
  }
}

/** Returns the µs of CPU per request of one subject without spans. */
function cpuOf (figures, layer, style, traced) {
  const isSubject = (entry) => entry.layer === layer && entry.style === style && entry.traced === traced
  return figures.find((entry) => isSubject(entry) && !entry.spans).cpu
}

const times = (ratio) => `${ratio.toFixed(2)} ×`
const stateName = (traced, spans) => !traced ? 'bare' : spans ? 'traced, with spans' : 'traced'

/** Cost of each layer, bare and traced. */
function layersTable (figures, counts) {
  const hoisted = LAYERS.flatMap((name) =>
    figures.filter(({ layer, style }) => layer === name && style === 'hoisted'))
  const rows = hoisted.map(({ layer, traced, spans, rate, cpu }) => [
    `${layer}, ${stateName(traced, spans)}`,
    digits(rate),
    `${Math.min(100, rate * cpu / 1e4).toFixed(0)} %`,
    digits(cpu),
    times(cpu / cpuOf(figures, layer, 'hoisted', false)),
    format(counts[layer].reduce((sum, { request }) => sum + request, 0))
  ])
  const heading = ['layer', 'requests/s', 'of a CPU', 'CPU µs/request', 'against bare', 'resources/request']
  return { title: 'One request on each layer', heading, rows }
}

function resourcesTable (counts) {
  const rows = LAYERS.flatMap((layer) => counts[layer].map(({ type, connection, request }) =>
    [`${layer}, ${type}`, format(connection), format(request)]))
  const heading = ['layer and type', 'a connection', 'a request']
  return { title: 'Async resources that each layer makes, by type', heading, rows }
}

function stylesTable (figures) {
  const rows = LAYERS.flatMap((layer) => [false, true].map((traced) => {
    const [a, b] = STYLES.map((style) => cpuOf(figures, layer, style, traced))
    return [`${layer}, ${stateName(traced, false)}`, digits(a), digits(b), times(b / a)]
  }))
  const heading = ['layer', 'hoisted, CPU µs/request', 'closures, CPU µs/request', 'closures ÷ hoisted']
  return { title: 'Callbacks closed over against hoisted', heading, rows }
}

/** @param {boolean} quick */
async function measure (quick) {
  const figures = await measureServers(quick ? QUICK : FULL)
  const counts = await countAll(COUNTED[quick ? 'quick' : 'full'])
  const compare = ([[layerA, styleA], [layerB, styleB]], traced) =>
    ({ a: cpuOf(figures, layerA, styleA, traced), b: cpuOf(figures, layerB, styleB, traced) })
  return {
    claims: claims.map((claim) => {
      return { ...claim, off: compare(sides[claim.id], false), on: compare(sides[claim.id], true) }
    }),
    tables: [layersTable(figures, counts), resourcesTable(counts), stylesTable(figures)]
  }
}

const roles = {
  serve: async (layer, style) => obey({ port: (await openServer(layer, style)).port }),
  count: countOwn
}

main({ answers, measure, roles })
