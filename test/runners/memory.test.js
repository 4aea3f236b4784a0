'use strict'

// Memory of a process that runs many test files: the amount that longstack and its leak gate add to the
// runner's own does not grow with them. Stacks of new files are kept and must be small.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const test = require('ava')
const { node, register, root, runsAll } = require('../helpers/run')
const { preload, testRunners } = require('../helpers/runners')

const FILES = 110
const FROM = 20 // the file from which growth counts: by then all is loaded
const RUN_MS = 280_000
const MAX_GROWTH = 5 * 2 ** 20 // bytes: stacks of 90 files, 30 to 40 kB each under Jest

/** @param {number} index @param {string} declare @returns {string} two of them record the heap */
const source = (index, declare) => `
  ${declare}
  const net = require('node:net')
  test('works ${index}', async () => {
    for (let i = 0; i < 2; i++) {
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
      const collect = require('node:vm').runInThisContext('gc')
      let lowest = Infinity
      for (let i = 0; i < 8; i++) {
        await new Promise((resolve) => setTimeout(resolve, 100))
        collect()
        lowest = Math.min(lowest, process.memoryUsage().heapUsed)
      }
      require('node:fs').writeSync(2, 'HEAP ' + lowest + '\\n')
    }
  }, 60000)`

/** @param {string} declare @param {string} [extension] @returns {Record<string, string>} */
const files = (declare, extension = 'js') => Object.fromEntries(Array.from({ length: FILES }, (_, i) => {
  return [`${String(i).padStart(3, '0')}.test.${extension}`, source(i, declare)]
}))

/** @param {import('../helpers/run').Result} result @returns {number} bytes between the two records */
function growthOf ({ stdout, stderr, code }) {
  const [first, last, ...more] = [...(stdout + stderr).matchAll(/HEAP (\d+)/g)].map(([, bytes]) => Number(bytes))
  if (code !== 0 || last === undefined || more.length > 0) throw new Error(`${code}: ${stdout}${stderr}`)
  return last - first
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {(isTraced: boolean) => Promise<import('../helpers/run').Result>} run the runner alone, or with the
 *   preload and the plug-in
 */
async function assertFlat (t, run) {
  const [bare, traced] = (await Promise.all([run(false), run(true)])).map(growthOf)
  t.log(`grows by ${traced} bytes, the runner alone by ${bare}`)
  t.true(traced - bare < MAX_GROWTH, `${traced} ${bare}`)
}

/** @param {boolean} isTraced */
const nodeOptions = (isTraced) => `--expose-gc ${isTraced ? preload : ''}`

/** Has files run in their order. */
const sequencer = 'class { sort (all) { return [...all].sort((a, b) => (a.path ?? a.moduleId) < (b.path ?? b.moduleId) ? -1 : 1) } shard (all) { return all } cacheResults () {} }'

if (runsAll) {
  testRunners(test.serial, ['mocha12'], `memory is flat over ${FILES} files`, async (t, run) => {
    await assertFlat(t, (isTraced) => run({
      files: { ...files('const test = (name, fn) => it(name, fn)'), 'setup.cjs': isTraced ? "module.exports = require('longstack/mocha')" : '' },
      args: ['--reporter', 'dot', '--timeout', '60000', '--require', './setup.cjs', '*.test.js'],
      nodeOptions: nodeOptions(isTraced),
      timeout: RUN_MS
    }))
  })

  testRunners(test.serial, ['jest30'], `memory is flat over ${FILES} files`, async (t, run) => {
    await assertFlat(t, (isTraced) => run({
      files: {
        ...files(''),
        'order.js': `module.exports = ${sequencer}`,
        'jest.config.js': `module.exports = {
          testSequencer: './order.js', setupFilesAfterEnv: ${isTraced ? "['longstack/jest']" : '[]'}
        }`
      },
      args: ['--runInBand', '--silent'],
      nodeOptions: nodeOptions(isTraced),
      timeout: RUN_MS
    }))
  })

  testRunners(test.serial, ['vitest4'], `memory is flat over ${FILES} files without isolation`, async (t, run) => {
    const declare = "import { test } from 'vitest'\nimport { createRequire } from 'node:module'\nconst require = createRequire(import.meta.url)"
    const setup = "setupFiles: ['longstack/vitest'], server: { deps: { inline: [/longstack/] } },"
    await assertFlat(t, (isTraced) => run({
      files: {
        ...files(declare, 'mjs'),
        'vitest.config.mjs': `export default { test: {
          ${isTraced ? setup : ''} isolate: false, fileParallelism: false, execArgv: ['--expose-gc'],
          sequence: { sequencer: ${sequencer} }
        } }`
      },
      args: ['run', '--reporter', 'dot', '--pool', 'forks'],
      nodeOptions: isTraced ? preload : '',
      timeout: RUN_MS
    }))
  })

  const canShare = Number(process.versions.node.split('.', 1)[0]) >= 24
  const testOfNode = canShare ? test.serial : test.skip
  testOfNode(`node:test: memory is constant over ${FILES} files in one process`, async (t) => {
    const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-memory-')))
    t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
    const project = files("const test = (name, fn) => require('node:test').test(name, fn)")
    for (const [name, text] of Object.entries(project)) fs.writeFileSync(path.join(folder, name), text)
    const plugin = ['-r', register, '--import', pathToFileURL(path.join(root, 'lib', 'runners', 'node-test.js')).href]
    const flags = ['--expose-gc', '--test', '--test-isolation=none', '--test-reporter=dot']
    const names = Object.keys(project)
    const args = (/** @type {boolean} */ isTraced) => [...(isTraced ? plugin : []), ...flags, ...names]
    await assertFlat(t, (isTraced) => node(args(isTraced), { cwd: folder, timeout: RUN_MS }))
  })
} else {
  test(`memory over ${FILES} files is tested with TESTS=all`, (t) => t.pass())
}
