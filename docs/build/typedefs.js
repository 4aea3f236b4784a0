'use strict'

// Reads JSDoc typedefs with TypeScript's parser.

const fs = require('node:fs')
const path = require('node:path')
const ts = require('typescript')

/**
 * @typedef {object} Property
 * @property {string} name with a question mark, if it is optional
 * @property {import('typescript').TypeNode} type
 * @property {string} text
 *
 * @typedef {object} Typedef
 * @property {string} name
 * @property {string} file
 * @property {string} text
 * @property {import('typescript').TypeNode | undefined} type undefined: an object with these properties
 * @property {Property[]} properties
 */

/** By file and name. @type {Map<string, Map<string, Typedef>>} */
const cache = new Map()

/** @param {string} file @returns {Map<string, Typedef>} by name */
function typedefsOf (file) {
  const cached = cache.get(file)
  if (cached !== undefined) return cached
  const text = fs.readFileSync(file, 'utf8')
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ESNext, true, ts.ScriptKind.JS)
  /** @type {Map<string, Typedef>} */
  const typedefs = new Map()
  for (const node of [...source.statements, source.endOfFileToken]) {
    // ts.getJSDocCommentsAndTags knows the last block before a statement only.
    const { jsDoc = [] } = /** @type {{ jsDoc?: import('typescript').JSDoc[] }} */ (/** @type {any} */ (node))
    for (const tag of jsDoc.flatMap(({ tags }) => [...tags ?? []])) {
      if (ts.isJSDocTypedefTag(tag) && tag.name !== undefined) add(typedefs, tag, file)
    }
  }
  cache.set(file, typedefs)
  return typedefs
}

/**
 * @param {Map<string, Typedef>} typedefs
 * @param {import('typescript').JSDocTypedefTag} tag
 * @param {string} file
 */
function add (typedefs, tag, file) {
  const { typeExpression } = tag
  const name = /** @type {import('typescript').Identifier} */ (tag.name).text
  const isLiteral = typeExpression !== undefined && ts.isJSDocTypeLiteral(typeExpression)
  const tags = isLiteral ? typeExpression.jsDocPropertyTags ?? [] : []
  typedefs.set(name, {
    name,
    file,
    text: textOf(tag),
    type: isLiteral ? undefined : typeIn(typeExpression),
    properties: tags.map((property) => ({
      name: `${property.name.getText()}${property.isBracketed ? '?' : ''}`,
      type: typeIn(property.typeExpression),
      text: textOf(property)
    }))
  })
}

/** @param {import('typescript').Node | undefined} expression of a tag */
function typeIn (expression) {
  return /** @type {import('typescript').JSDocTypeExpression} */ (expression).type
}

/** @param {import('typescript').JSDocTag} tag @returns {string} its comment, in one line */
function textOf (tag) {
  return (ts.getTextOfJSDocComment(tag.comment) ?? '').replace(/\s+/g, ' ').trim()
}

/**
 * Finds the typedef that a type stands for, through imports.
 * @param {import('typescript').TypeNode} type
 * @param {string} file in which the type stands
 * @returns {Typedef | undefined} undefined: it is no typedef of this package
 */
function resolve (type, file) {
  const imported = ts.isImportTypeNode(type) ? importOf(type, file) : undefined
  const name = imported?.name ?? (ts.isTypeReferenceNode(type) ? type.typeName.getText() : undefined)
  if (name === undefined) return undefined
  const typedef = typedefsOf(imported?.file ?? file).get(name)
  if (typedef?.type === undefined || !ts.isImportTypeNode(typedef.type)) return typedef
  return resolve(typedef.type, typedef.file)
}

/** @param {import('typescript').ImportTypeNode} type @param {string} file */
function importOf (type, file) {
  if (!ts.isLiteralTypeNode(type.argument) || type.qualifier === undefined) return undefined
  const specifier = /** @type {import('typescript').StringLiteral} */ (type.argument.literal).text
  if (!specifier.startsWith('.')) return undefined
  const target = path.join(path.dirname(file), specifier)
  return { name: type.qualifier.getText(), file: target.endsWith('.js') ? target : `${target}.js` }
}

/**
 * Lists the typedefs of this package that a type names.
 * @param {import('typescript').TypeNode} type
 * @param {string} file
 * @returns {Typedef[]}
 */
function namedIn (type, file) {
  /** @type {Typedef[]} */
  const named = []
  const visit = (/** @type {import('typescript').Node} */ node) => {
    const typedef = ts.isTypeNode(node) ? resolve(node, file) : undefined
    if (typedef !== undefined) named.push(typedef)
    ts.forEachChild(node, visit)
  }
  visit(type)
  return named
}

/**
 * Prints a type in one line, without the files that types are in.
 * @param {import('typescript').Node} node
 * @returns {string}
 */
function print (node) {
  return node.getText().replace(/import\('\.[^']*'\)\./g, '').replace(/import\('node:([^']*)'\)\./g, '$1.')
    .replace(/\s*\n\s*\*?\s*/g, ' ').replace(/^\(\s*(\S*)\s*\)$/, '$1').trim()
}

module.exports = { namedIn, print, resolve, typedefsOf }
