// Package split says which conditions training may see. A manifest is made of families, dial combinations, task graphs and
// mechanisms, never of seeds alone; it is frozen and hashed before training, and every episode's constructor asks it.
//
// Regions nest by mode:
//
//	mode    may see             for
//	train   train               gradients, Break, curriculum
//	eval    train, eval         monitor looks
//	test    train, eval, test   sealed looks
package split
