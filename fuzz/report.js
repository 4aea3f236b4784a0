'use strict'

// Files of spans with anything in them, through every output of longstack report: nothing throws, no line
// ends the reading, what is printed commands no terminal, JSON and traces parse, a page has no element and no
// attribute of the file's.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { parseLimit } = require('../lib/cli/limit-parser')
const { asJson } = require('../lib/cli/terminal')
const { checkLimits } = require('../report/aggregate/limits')
const { createModel } = require('../report/aggregate/model')
const { markdown } = require('../report/render/markdown')
const { createPage } = require('../report/render/page')
const { report } = require('../report/render/text')
const { writeTrace } = require('../report/render/chrome-trace')
const { expectHarmless } = require('./helpers/expectations')
const { elementsOf, expectNoMarkup } = require('./helpers/page')
const { CANARY, spanFile } = require('./helpers/span-lines')
const { check, fc } = require('./helpers/property')

const BATCH = 20
const limits = ['p95 < 100ms', 'errors < 1%', 'GET /a p50 < 5ms'].flatMap((text) => {
  try {
    return [parseLimit(text)]
  } catch {
    return []
  }
})

/** A value of the wrong kind is absent. @param {import('../report/aggregate/model').Model} model */
function expectRead ({ files }) {
  const problem = files.flatMap(({ problems }) => problems)
    .find((sentence) => /cannot be read|a value of the wrong kind/.test(sentence))
  if (problem !== undefined) throw new Error(problem)
}

/** @param {string} file @param {string} other @param {string} elements */
async function render (file, other, elements) {
  const model = await createModel([file], { slowest: 20, traces: true })
  expectRead(model)
  if (limits.length > 0) model.limits = checkLimits(model, limits)
  const traceFile = `${file}.json`
  for (const width of [20, 80, 200]) expectHarmless('text', report(model, { width, full: true, tree: 'all' }))
  JSON.parse(asJson(model))
  expectHarmless('json', asJson(model))
  if (model.span !== undefined) expectHarmless('markdown', markdown(model))
  expectNoMarkup(createPage(model, { title: CANARY }), elements)
  await writeTrace([file], traceFile)
  JSON.parse(fs.readFileSync(traceFile, 'utf8'))
  expectHarmless('trace', fs.readFileSync(traceFile, 'utf8'))
  const compared = await createModel([file], { compare: [other], slowest: 20, traces: true })
  expectHarmless('comparison', report(compared, { width: 80, full: true }))
  expectHarmless('markdown of a comparison', markdown(compared))
  expectNoMarkup(createPage(compared), elements)
}

/** @type {import('./helpers/targets').Target} */
module.exports = {
  name: 'report',
  async run (settings) {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-fuzz-'))
    const [file, other] = ['a', 'b'].map((name) => path.join(directory, name))
    try {
      fs.writeFileSync(file, '')
      const elements = elementsOf(createPage(await createModel([file], { slowest: 20, traces: true })))
      return await check(fc.asyncProperty(spanFile(), spanFile(), async (bytes, otherBytes) => {
        fs.writeFileSync(file, bytes)
        fs.writeFileSync(other, otherBytes)
        await render(file, other, elements)
        if (/** @type {any} */ ({}).polluted !== undefined) throw new Error('a prototype was changed')
      }), settings, BATCH)
    } finally {
      fs.rmSync(directory, { recursive: true, force: true })
    }
  }
}
