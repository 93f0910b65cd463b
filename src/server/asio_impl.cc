// Asio's functions, compiled once.
#include <boost/asio/impl/src.hpp>
