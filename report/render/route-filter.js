'use strict'

// Reduces a model to the routes that a pattern selects.

const { routePattern } = require('../aggregate/route-names')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/path-tree').PathNode} PathNode
 */

/**
 * @param {Model} model
 * @param {string} pattern
 * @returns {Model}
 */
function ofRoute (model, pattern) {
  const isSelected = routePattern(pattern)
  const routes = model.routes.filter(({ name }) => isSelected(name))
  const open = model.open.filter(({ name }) => isSelected(name))
  return {
    ...model,
    routes,
    open,
    openCount: open.length,
    verdict: model.verdict.filter(({ route }) => route !== undefined && isSelected(route)),
    tree: treeOf(model.tree, isSelected),
    slowTree: treeOf(model.slowTree, isSelected),
    failures: model.failures.filter((failure) => failure.routes.some(({ name }) => isSelected(name))),
    slowest: model.slowest.filter(({ name }) => isSelected(name)),
    blockers: model.blockers.filter(({ name }) => isSelected(name))
  }
}

/** @param {PathNode} tree @param {(name: string) => boolean} isSelected @returns {PathNode} */
function treeOf (tree, isSelected) {
  const children = tree.children.filter(({ name }) => isSelected(name))
  const sum = (/** @type {'ms' | 'count'} */ key) => children.reduce((total, child) => total + child[key], 0)
  return { ...tree, children, ms: sum('ms'), count: sum('count') }
}

module.exports = { ofRoute }
