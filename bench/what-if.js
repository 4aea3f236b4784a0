'use strict'

// Compares the report's predictions with the effect of the change: node bench/what-if.js [--node PATH]
// [--only NAME] [--times N]. Artificial services (test/fixtures/what-if/services.js) run unchanged, then with
// the change named by the verdict's finding or by --what-if, and the prediction is compared with the same
// figure of the second run. Functions that block only because the machine is busy are not removed by the
// change.

const { execFile, spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { parseArgs, promisify } = require('node:util')
const { createModel } = require('../report/aggregate/model')
const { names } = require('../test/fixtures/what-if/services')

const fixtures = path.join(__dirname, '..', 'test', 'fixtures')
const register = path.join(__dirname, '..', 'lib', 'register.js')
const service = path.join(fixtures, 'what-if', 'services.js')

/** Pools that --what-if resizes, as no finding does. @type {Record<string, number[]>} */
const resizes = { 'pool-wide': [12, 4], 'pool-fan-out': [4, 8] }

/**
 * Runs a service to completion.
 * @param {string} node
 * @param {string} name
 * @param {Record<string, string>} env
 * @param {import('../report/aggregate/what-if').PoolChange[]} [whatIf]
 */
async function modelOf (node, name, env, whatIf) {
  const file = path.join(os.tmpdir(), `longstack-what-if-${process.pid}.jsonl`)
  fs.rmSync(file, { force: true })
  const blocked = name === 'delayer' ? {} : { LONGSTACK_BLOCKED: '20' }
  await promisify(execFile)(node, ['-r', register, service, name], {
    env: { ...process.env, LONGSTACK_SPANS: file, ...blocked, ...env }
  })
  const model = await createModel([file], { whatIf })
  fs.rmSync(file)
  return model
}

/**
 * @param {string} node
 * @param {string} name
 * @param {string} port of the database
 */
async function compare (node, name, port) {
  const env = { DATABASE_PORT: port }
  if (name in resizes) {
    const [from, to] = resizes[name]
    const resize = [{ peer: `127.0.0.1:${port}`, from, to }]
    const { experiments } = await modelOf(node, name, env, resize)
    const [prediction] = experiments?.changes[0].figures ?? []
    const rule = `${from} -> ${to}`
    if (prediction?.unsure !== undefined) return { name, rule: `${rule}: ${prediction.unsure}` }
    return await measure(node, name, rule, prediction, { ...env, PLACES: String(to) })
  }
  const before = await modelOf(node, name, env)
  const finding = before.verdict.find(({ rule, at: frame, whatIf }) => whatIf !== undefined &&
    (rule !== 'blocker' || /^(?:computeSignature|signReceipt) /.test(String(frame))))
  if (finding?.whatIf === undefined) {
    const rules = before.verdict.map(({ rule }) => rule)
    return { name, rule: rules.join() || 'no finding' }
  }
  const { places, predictions: [prediction] } = finding.whatIf
  const change = places === undefined ? { CHANGED: '1' } : { PLACES: String(places) }
  return await measure(node, name, finding.rule, prediction, { ...env, ...change })
}

/**
 * @param {string} node
 * @param {string} name
 * @param {string} rule
 * @param {import('../report/aggregate/replay').Prediction} prediction
 * @param {Record<string, string>} env with the change
 */
async function measure (node, name, rule, { route, figure, beforeMs, afterMs, error }, env) {
  const after = await modelOf(node, name, env)
  const real = after.routes.find((other) => other.name === route)?.summary?.[figure] ?? NaN
  return { name, rule, route, figure, beforeMs, afterMs, real, off: afterMs / real - 1, error }
}

async function main () {
  const { values } = parseArgs({
    options: {
      node: { type: 'string', default: process.execPath },
      only: { type: 'string' },
      times: { type: 'string', default: '1' }
    }
  })
  const database = spawn(values.node, [path.join(fixtures, 'verdict', 'database.js')], {
    stdio: ['pipe', 'pipe', 'inherit']
  })
  const port = String((await once(database.stdout, 'data'))[0]).trim()
  const ms = (/** @type {number} */ figure) => `${figure.toFixed(1)} ms`
  const percent = (/** @type {number} */ part) => `${(part * 100).toFixed(1)} %`
  console.log('| service | rule | figure | before | predicted | with the change | off | replay off |')
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- |')
  for (let i = 0; i < Number(values.times); i++) {
    for (const name of names.filter((name) => values.only === undefined || name.includes(values.only))) {
      const line = await compare(values.node, name, port)
      const { rule, route, figure, beforeMs, afterMs, real, off, error } = line
      const figures = route === undefined
        ? ['says nothing']
        : [`${figure} of ${route}`, ms(beforeMs), ms(afterMs), ms(real), percent(off), percent(error)]
      console.log(`| ${[name, rule, ...figures].join(' | ')} |`)
    }
  }
  database.kill()
}

main()
