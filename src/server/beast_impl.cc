// Beast's functions, compiled once.
#include <boost/beast/src.hpp>
