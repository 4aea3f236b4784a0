'use strict'

// Memory of a process that runs many test files: what the leak gate adds to the preload does not grow with
// them. The stacks of ever new files, which both keep, are bounded by the option `budget`.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const test = require('ava')
const { node, register, root, runsAll } = require('../helpers/run')
const { preload, testRunners } = require('../helpers/runners')

const FILES = 200
const FROM = 40 // the file from which growth counts: by then all is loaded
const MAX_GROWTH = 5 * 2 ** 20 // bytes

/** @param {number} index @param {string} declare @returns {string} a file that records the heap at its end */
const source = (index, declare) => `
  ${declare}
  const net = require('node:net')
  test('works ${index}', async () => {
    for (let i = 0; i < 5; i++) {
      const server = net.createServer((socket) => socket.end())
      await new Promise((resolve) => server.listen(0, resolve))
      await new Promise((resolve) => net.connect(server.address().port).resume().on('close', resolve))
      await new Promise((resolve) => server.close(resolve))
    }
  })
  test('fails ${index}', async () => {
    await new Promise((resolve) => setTimeout(resolve, 1))
    String(new Error('late ${index}').stack)
    if (${index} === ${FROM} || ${index} === ${FILES - 1}) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      for (let i = 0; i < 3; i++) { gc(); await new Promise((resolve) => setImmediate(resolve)) }
      require('node:fs').writeSync(2, 'HEAP ' + process.memoryUsage().heapUsed + '\\n')
    }
  })`

/** @param {string} declare @returns {Record<string, string>} */
const files = (declare) => Object.fromEntries(Array.from({ length: FILES }, (_, i) => {
  return [`${String(i).padStart(3, '0')}.test.js`, source(i, declare)]
}))

/** @param {string} text @returns {number} bytes between the two records */
function growthOf (text) {
  const [first, last] = [...text.matchAll(/HEAP (\d+)/g)].map(([, bytes]) => Number(bytes))
  return last - first
}

if (runsAll) {
  const setup = { 'setup.cjs': "module.exports = require('longstack/mocha')", 'bare.cjs': '' }

  testRunners(test, ['mocha12'], `memory is flat over ${FILES} files`, async (t, run) => {
    const project = { ...setup, ...files('const test = it') }
    const args = (/** @type {string} */ file) => ['--reporter', 'dot', '--timeout', '60000', '--require', file, '*.test.js']
    const nodeOptions = `--expose-gc ${preload}`
    const bare = await run({ files: project, args: args('./bare.cjs'), nodeOptions })
    const gated = await run({ files: project, args: args('./setup.cjs'), nodeOptions })
    t.is(gated.code, 0, gated.stdout + gated.stderr)
    const growth = growthOf(gated.stderr) - growthOf(bare.stderr)
    t.log(`grows by ${growth} bytes more than with the preload alone (${growthOf(bare.stderr)})`)
    t.true(growth < MAX_GROWTH, String(growth))
  })

  const canShare = Number(process.versions.node.split('.', 1)[0]) >= 24
  const testOfNode = canShare ? test : test.skip
  testOfNode(`node:test: memory is flat over ${FILES} files in one process`, async (t) => {
    const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-memory-')))
    t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
    const project = files("const { test } = require('node:test')")
    for (const [name, text] of Object.entries(project)) fs.writeFileSync(path.join(folder, name), text)
    const plugin = ['--import', pathToFileURL(path.join(root, 'lib', 'runners', 'node-test.js')).href]
    const flags = ['--expose-gc', '-r', register, '--test', '--test-isolation=none', '--test-reporter=dot']
    const bare = await node([...flags, ...Object.keys(project)], { cwd: folder })
    const gated = await node([...flags, ...plugin, ...Object.keys(project)], { cwd: folder })
    t.is(gated.code, 0, gated.stdout + gated.stderr)
    const growth = growthOf(gated.stdout + gated.stderr) - growthOf(bare.stdout + bare.stderr)
    t.log(`grows by ${growth} bytes more than with the preload alone (${growthOf(bare.stdout + bare.stderr)})`)
    t.true(growth < MAX_GROWTH, String(growth))
  })
} else {
  test(`memory over ${FILES} files is tested with TESTS=all`, (t) => t.pass())
}
