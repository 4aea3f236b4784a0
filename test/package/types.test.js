'use strict'

// Strict TypeScript programs with the generated declarations, in a folder with longstack installed as for
// users: only packed files, nothing else of the checkout.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, root } = require('../helpers/run')

const tsc = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc')
const fixtures = path.join(__dirname, '..', 'fixtures', 'types')

/** @type {string} */
let folder

test.before(async (t) => {
  t.timeout(180_000)
  folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'longstack-types-'))
  const home = path.join(folder, 'node_modules', 'longstack')
  for (const name of ['package.json', 'index.js', 'lib']) fs.cpSync(path.join(root, name), path.join(home, name), { recursive: true })
  for (const name of ['@types/node', 'undici-types']) {
    fs.mkdirSync(path.dirname(path.join(folder, 'node_modules', name)), { recursive: true })
    fs.symlinkSync(path.join(root, 'node_modules', name), path.join(folder, 'node_modules', name))
  }
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true }')
  for (const name of fs.readdirSync(fixtures)) {
    fs.copyFileSync(path.join(fixtures, name), path.join(folder, name))
  }
  const built = await node([tsc, '-p', path.join(root, 'tsconfig.types.json'), '--outDir', path.join(home, 'types')], { timeout: 120_000 })
  t.is(built.code, 0, built.stdout)
})

test.after.always(() => fs.rmSync(folder, { recursive: true, force: true }))

/**
 * Compiles as strictly as TypeScript can, the declarations of longstack included.
 * @param {string[]} files
 * @param {string} [resolution]
 */
function compile (files, resolution = 'node16') {
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--noUncheckedSideEffectImports', '--skipLibCheck', 'false']
  const options = ['--module', resolution, '--moduleResolution', resolution, '--target', 'es2022', '--types', 'node', ...strict]
  return node([tsc, ...options, '--outDir', path.join(folder, resolution), ...files], { cwd: folder, timeout: 120_000 })
}

for (const resolution of ['node16', 'nodenext']) {
  test.serial(`programs in CommonJS and in ESM compile and run (${resolution})`, async (t) => {
    t.timeout(180_000)
    const { stdout, code } = await compile(['commonjs.cts', 'module.mts'], resolution)
    t.is(stdout, '')
    t.is(code, 0)
    const commonjs = await node([path.join(folder, resolution, 'commonjs.cjs')], { cwd: folder })
    t.deepEqual(commonjs, { stdout: '[false,3,"js","undefined",0,"object","string"]\n', stderr: '', code: 0, signal: null })
    const esm = await node([path.join(folder, resolution, 'module.mjs')], { cwd: folder })
    t.is(esm.stderr, '')
    t.deepEqual(esm.stdout.split('\n'), ['[true,true,"Timeout","registered",true,true,"string"]', 'LONGSTACK_ERR_INVALID_TARGET true', '4 true', ''])
  })
}

test.serial('wrong use is rejected, line by line', async (t) => {
  t.timeout(180_000)
  const { stdout, code } = await compile(['wrong.mts'])
  t.is(stdout, '', 'an unused @ts-expect-error would be an error')
  t.is(code, 0)
  // The check checks: without the comments each of the lines is an error.
  const bare = fs.readFileSync(path.join(folder, 'wrong.mts'), 'utf8')
  fs.writeFileSync(path.join(folder, 'bare.mts'), bare.replaceAll('// @ts-expect-error', '//'))
  const errors = (await compile(['bare.mts'])).stdout.split('\n').filter((line) => line.startsWith('bare.mts'))
  t.is(errors.length, bare.match(/@ts-expect-error/g)?.length)
})

test.serial('the declarations need no extra package', (t) => {
  const types = path.join(folder, 'node_modules', 'longstack', 'types')
  const foreign = new Set()
  for (const name of fs.readdirSync(types, { recursive: true, encoding: 'utf8' })) {
    if (!/\.d\.m?ts$/.test(name)) continue
    const text = fs.readFileSync(path.join(types, name), 'utf8')
    for (const [, specifier] of text.matchAll(/(?:from|import\(|require\()\s*["']([^"']+)["']/g)) {
      if (!/^(?:\.|node:)/.test(specifier)) foreign.add(`${name}: ${specifier}`)
    }
  }
  t.deepEqual([...foreign], [])
})
