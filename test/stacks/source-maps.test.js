'use strict'

// Frames of the error and of every hop show source positions, regardless of who maps them.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const maps = require('../helpers/maps')
const { node, register, root, split } = require('../helpers/run')

const packages = path.join(root, 'node_modules')

/**
 * Runs one of the files under the preload, in a folder of its own.
 * @param {Record<string, string>} files
 * @param {string} main
 * @param {string[]} [args] of node
 * @param {object} [options]
 */
async function run (files, main, args = ['-r', register], options = {}) {
  const folder = maps.folder(files)
  try {
    const result = await node([...args, path.join(folder, main)], { cwd: folder, ...options })
    return { ...result, stdout: result.stdout.replaceAll(folder, '<dir>') }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * The error and both hops stand in the source, at the right line and column.
 * @param {import('ava').ExecutionContext} t
 * @param {{ stdout: string, stderr: string, code: number | null }} result
 * @param {object} [expected]
 * @param {string} [expected.file]
 * @param {string[][]} [expected.story]
 */
function told (t, { stdout, stderr, code }, { file = '<dir>/app.ts', story = maps.story } = {}) {
  t.is(code, 0, stderr)
  t.is(stderr, '')
  const { head, hops } = split(stdout)
  t.true(head.includes(`${file}:${story[0][0]}`), stdout)
  const [immediate, timer, ...others] = hops
  t.deepEqual(others, [], stdout)
  t.regex(immediate.title, /^setImmediate · /)
  t.regex(timer.title, /^setTimeout\(1\) · /)
  for (const [i, hop] of [immediate, timer].entries()) {
    for (const piece of story[i + 1]) t.true(hop.frames.includes(/\d/.test(piece) ? `${file}:${piece}` : `at ${piece} (`), stdout)
  }
  t.notRegex(stdout, /program\.(?:js|mjs)/, 'no frame of the generated code is left')
}

const { code, map } = maps.compile()
const external = { 'program.js': `${code}//# sourceMappingURL=program.js.map\n`, 'program.js.map': JSON.stringify(map) }
const inlined = { 'program.js': code + maps.inline(map) }
const esm = maps.compile({ type: 'mjs' })
const esmFiles = { 'program.mjs': esm.code + maps.inline(esm.map) }

test('an external map', async (t) => told(t, await run(external, 'program.js')))
test('an inline map', async (t) => told(t, await run(inlined, 'program.js')))
test('an ESM file, at its URL', async (t) => told(t, await run(esmFiles, 'program.mjs'), { file: 'file://<dir>/app.ts' }))
test('an external map under --enable-source-maps', async (t) => told(t, await run(external, 'program.js', ['--enable-source-maps', '-r', register])))
test('an inline map under --enable-source-maps', async (t) => told(t, await run(inlined, 'program.js', ['--enable-source-maps', '-r', register])))
test('an ESM file under --enable-source-maps', async (t) => told(t, await run(esmFiles, 'program.mjs', ['--enable-source-maps', '-r', register])))

test('an index map: each section has its own source', async (t) => {
  const bundle = maps.bundle([maps.compile({ name: 'one.ts' }), maps.compile({ name: 'two.ts' })])
  const files = { 'program.js': `${bundle.code}//# sourceMappingURL=bundle.map\n`, 'bundle.map': JSON.stringify(bundle.map) }
  const { stdout, stderr } = await run(files, 'program.js')
  t.is(stderr, '')
  const [first, second] = stdout.split(/^(?=Error: )/m).map((stack) => stack.replace(/.*<dir>\/program\.js.*\n/, '')) // the module's wrapper has no source
  told(t, { stdout: first, stderr, code: 0 }, { file: '<dir>/one.ts' })
  told(t, { stdout: second, stderr, code: 0 }, { file: '<dir>/two.ts' })
})

test('an index map that Node itself cannot read still maps the hops', async (t) => {
  const bundle = maps.bundle([maps.compile({ name: 'one.ts' })])
  const files = { 'program.js': bundle.code + maps.inline(bundle.map) }
  const { stdout } = await run(files, 'program.js', ['--enable-source-maps', '-r', register])
  t.true(split(stdout).hops[1].frames.includes(`at start (<dir>/one.ts:${maps.place('first({ name')})`), stdout)
})

test('the first line and the first column, in CommonJS and in ESM', async (t) => {
  // One line: a CommonJS wrapper on that line would shift every column.
  const line = 'setTimeout(() => { console.log(new Error("x").stack) }, 1)'
  const { SourceMapGenerator } = require('source-map')
  const generator = new SourceMapGenerator({ file: 'program.js' })
  for (const [column, original] of [[0, 4], [line.indexOf('new Error'), 40]]) {
    generator.addMapping({ source: 'one.ts', generated: { line: 1, column }, original: { line: 7, column: original } })
  }
  generator.setSourceContent('one.ts', '')
  const files = { 'program.js': `${line}\n${maps.inline(generator.toJSON())}`, 'program.mjs': `${line}\n${maps.inline(generator.toJSON())}` }
  for (const [main, prefix] of [['program.js', ''], ['program.mjs', 'file://']]) {
    const { stdout } = await run(files, main)
    const { head, hops } = split(stdout)
    t.true(head.includes(`${prefix}<dir>/one.ts:7:41`), stdout)
    t.true(hops[0].frames.includes(`${prefix}<dir>/one.ts:7:5`), stdout)
  }
})

test('a folder with a space and a percent sign, a module with a query', async (t) => {
  const folder = maps.folder({})
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const odd = path.join(folder, 'a b%20c')
  fs.mkdirSync(odd)
  fs.writeFileSync(path.join(odd, 'program.mjs'), esmFiles['program.mjs'])
  fs.writeFileSync(path.join(odd, 'main.mjs'), 'import "./program.mjs?version=1"')
  const result = await node(['-r', register, path.join(odd, 'main.mjs')])
  const stdout = result.stdout.replaceAll(/file:\/\/\S*a%20b%2520c/g, '<dir>')
  told(t, { ...result, stdout })
})

// What a map calls its source → what a person is shown; "dir" is the folder of the program.
for (const [source, shown, sourceRoot = ''] of [
  ['my%20file.ts', '<dir>/my file.ts'],
  ['my file.ts', '<dir>/my file.ts'],
  ['caf%C3%A9%23.ts', '<dir>/café#.ts'],
  ['my%20file.ts', '<dir>/the src/my file.ts', 'the%20src/'],
  ['file://<dir>/my%20file.ts', '<dir>/my file.ts'],
  ['webpack://app/./src/my%20file.ts', 'webpack://app/src/my%20file.ts'],
  ['webpack:///./src/a.ts?1a2b', 'webpack:///src/a.ts?1a2b'],
  ['src/a.ts', 'webpack://app/src/a.ts', 'webpack://app/']
]) {
  test(`a source called ${sourceRoot}${source}, as Node itself shows it`, async (t) => {
    const folder = maps.folder({})
    t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
    const named = { ...map, sources: [source.replace('<dir>', folder)], sourceRoot }
    fs.writeFileSync(path.join(folder, 'program.js'), code + maps.inline(named))
    const run = async (/** @type {string[]} */ ...args) => {
      const result = await node([...args, path.join(folder, 'program.js')])
      return { ...result, stdout: result.stdout.replaceAll(folder, '<dir>') }
    }
    told(t, await run('-r', register), { file: shown })
    told(t, await run('--enable-source-maps', '-r', register), { file: shown })
    const { stdout } = await run('--enable-source-maps')
    t.true(stdout.includes(`${shown}:${maps.story[0][0]}`), stdout)
  })
}

test('a source on another host is shown unchanged; Node itself ignores such maps', async (t) => {
  const shown = 'file://elsewhere/app.ts'
  told(t, await run({ 'program.js': code + maps.inline({ ...map, sources: [shown] }) }, 'program.js'), { file: shown })
})

test('a source that webpack names by a URL is the file above it with the same text', async (t) => {
  const [content] = map.sourcesContent
  const urls = { 'webpack://app/./src/my%20app.ts': 'src/my app.ts', 'webpack:///src/other.ts': undefined }
  for (const [url, name] of Object.entries(urls)) {
    const folder = maps.folder({})
    t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
    fs.mkdirSync(path.join(folder, 'src'))
    fs.mkdirSync(path.join(folder, 'dist', 'src'), { recursive: true })
    fs.writeFileSync(path.join(folder, 'src', 'my app.ts'), content)
    fs.writeFileSync(path.join(folder, 'dist', 'src', 'my app.ts'), `${content}// another one`)
    fs.writeFileSync(path.join(folder, 'src', 'other.ts'), `${content}// changed since`)
    fs.writeFileSync(path.join(folder, 'dist', 'program.js'), code + maps.inline({ ...map, sources: [url], sourceRoot: '' }))
    const result = await node(['-r', register, path.join(folder, 'dist', 'program.js')])
    const stdout = result.stdout.replaceAll(folder, '<dir>')
    told(t, { ...result, stdout }, { file: name === undefined ? url : `<dir>/${name}` })
  }
})

test('a source made by a webpack loader: frames keep V8\'s positions', async (t) => {
  for (const args of [['-r', register], ['--enable-source-maps', '-r', register]]) {
    const { stdout, stderr } = await run({ 'program.js': code + maps.inline({ ...map, sources: ['webpack://app/?481d'], sourceRoot: '' }) }, 'program.js', args)
    t.is(stderr, '')
    const { hops } = split(stdout)
    t.is(hops.length, 2, stdout)
    for (const { frames } of hops) t.regex(frames, /<dir>\/program\.js:\d/)
    for (const { frames } of hops) t.notRegex(frames, /webpack/)
  }
})

for (const name of ['100%.ts', 'a%2Fb.ts', 'as%20it%20is.ts']) {
  test(`a source called ${name}, not an escape or the literal file name`, async (t) => {
    const files = { 'program.js': code + maps.inline({ ...map, sources: [name] }), [name]: '' }
    told(t, await run(files, 'program.js'), { file: `<dir>/${name}` })
  })
}

// What a file calls its map → the name of the map's file
for (const [url, file] of [
  ['%5Broot%20of%20it%5D__0c~l._.js.map', '[root of it]__0c~l._.js.map'], // as Turbopack does
  ['caf%C3%A9%23.map', 'café#.map'],
  ['file://<dir>/my%20program.map', 'my program.map'],
  ['as%20it%20is.map', 'as%20it%20is.map'],
  ['100%.map', '100%.map']
]) {
  test(`a map at ${url}`, async (t) => {
    const folder = maps.folder({ [file]: JSON.stringify({ ...map, sources: ['my%20app.ts'] }) })
    t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
    fs.writeFileSync(path.join(folder, 'program.js'), `${code}//# sourceMappingURL=${url.replace('<dir>', folder)}\n`)
    const result = await node(['-r', register, path.join(folder, 'program.js')])
    told(t, { ...result, stdout: result.stdout.replaceAll(folder, '<dir>') }, { file: '<dir>/my app.ts' })
  })
}

test('an index map at an escaped URL', async (t) => {
  const bundle = maps.bundle([maps.compile({ name: 'one.ts' }), maps.compile({ name: 'two.ts' })])
  const files = { 'program.js': `${bundle.code}//# sourceMappingURL=%5Ball%5D.map\n`, '[all].map': JSON.stringify(bundle.map) }
  const { stdout, stderr } = await run(files, 'program.js')
  t.is(stderr, '')
  const [first, second] = stdout.split(/^(?=Error: )/m).map((stack) => stack.replace(/.*<dir>\/program\.js.*\n/, ''))
  told(t, { stdout: first, stderr, code: 0 }, { file: '<dir>/one.ts' })
  told(t, { stdout: second, stderr, code: 0 }, { file: '<dir>/two.ts' })
})

test('process.setSourceMapsEnabled, on and off again', async (t) => {
  const main = `
    process.setSourceMapsEnabled(true)
    require('./program.js')
    setTimeout(() => { process.setSourceMapsEnabled(false); require('./again.js') }, 60)`
  const { stdout, stderr } = await run({ ...external, 'main.js': main, 'again.js': inlined['program.js'] }, 'main.js')
  const [first, second] = stdout.split(/^(?=Error: )/m)
  for (const stack of [first, second]) {
    t.true(stack.includes(`_onImmediate (<dir>/app.ts:${maps.story[0][0]})`), stdout + stderr)
    t.true(stack.includes(`at start (<dir>/app.ts:${maps.place('first({ name')})`), stdout + stderr)
  }
})

const support = `require(${JSON.stringify(path.join(packages, 'source-map-support'))}).install()`

test('source-map-support, installed by the program before longstack is enabled', async (t) => {
  const main = `${support}; require(${JSON.stringify(register)}); require('./program.js')`
  told(t, await run({ ...external, 'main.js': main }, 'main.js', []))
})

test('source-map-support, installed after', async (t) => {
  told(t, await run({ ...external, 'main.js': `${support}; require('./program.js')` }, 'main.js'))
})

test('source-map-support, installed in a later tick', async (t) => {
  const main = `require('./program.js'); setImmediate(() => { ${support} })`
  told(t, await run({ ...external, 'main.js': main }, 'main.js'))
})

test('source-map-support, installed in the previous callback of the same loop iteration', async (t) => {
  const main = `require('./program.js'); const end = Date.now() + 5; while (Date.now() < end); setImmediate(() => { ${support} })`
  told(t, await run({ ...external, 'main.js': main }, 'main.js'))
})

test('source-map-support with sources that are not on disk', async (t) => {
  const main = `
    require(${JSON.stringify(path.join(packages, 'source-map-support'))}).install({
      retrieveSourceMap: (file) => file.endsWith('program.js') ? { url: file, map: ${JSON.stringify(JSON.stringify(map))} } : null
    })
    require('./program.js')`
  told(t, await run({ 'program.js': code, 'main.js': main }, 'main.js'))
})

const tsNode = path.join(packages, 'ts-node', 'register', 'transpile-only')
const tsFiles = {
  'app.ts': fs.readFileSync(path.join(__dirname, '..', 'fixtures', 'maps', 'app.ts'), 'utf8'),
  'tsconfig.json': JSON.stringify({ compilerOptions: { module: 'commonjs', target: 'es2022', removeComments: true } }),
  'package.json': '{}'
}

/** @param {string[]} order of preloads */
const withTsNode = (...order) => run({ ...tsFiles, 'main.js': "require('./app.ts')" }, 'main.js', order.flatMap((file) => ['-r', file]), {
  env: { TS_NODE_COMPILER: path.join(packages, 'typescript') }
})

test('ts-node, registered before', async (t) => told(t, await withTsNode(tsNode, register)))
test('ts-node, registered after', async (t) => told(t, await withTsNode(register, tsNode)))

for (const flags of [[], ['--enable-source-maps']]) {
  test(`a source neither on disk nor in the map: hops keep V8's positions, ${flags}`, async (t) => {
    const { sourcesContent, ...bare } = map
    const files = { ...external, 'program.js.map': JSON.stringify(bare) }
    const args = [...flags, '-r', register]
    const { stdout } = await run(files, 'program.js', args)
    const { head, hops } = split(stdout)
    t.is(head.includes('app.ts'), flags.length > 0, 'Node maps what it prints')
    t.regex(hops[0].frames, /<dir>\/program\.js:\d+:\d+/)
    t.false(hops.some(({ frames }) => frames.includes('app.ts')), stdout)
    told(t, await run({ ...files, 'app.ts': sourcesContent[0] }, 'program.js', args))
  })
}

test('a package without its sources: its frames stay unmapped, whatever the map says', async (t) => {
  const folder = maps.folder({ 'main.js': "require('library')" })
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const library = path.join(folder, 'node_modules', 'library')
  fs.mkdirSync(library, { recursive: true })
  fs.writeFileSync(path.join(library, 'index.js'), inlined['program.js'])
  const args = ['-r', register, path.join(folder, 'main.js')]
  const env = { LONGSTACK_HIDE: '/^$/' }
  t.regex((await node(args, { env })).stdout, /── setImmediate .*\n {4}at .*node_modules\/library\/index\.js:/)
  fs.writeFileSync(path.join(library, 'app.ts'), map.sourcesContent[0])
  t.regex((await node(args, { env })).stdout, /── setImmediate .*\n {4}at .*node_modules\/library\/app\.ts:/)
})
