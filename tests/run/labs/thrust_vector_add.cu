#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/transform.h>
#include <wb.h>

int main(int argc, char *argv[]) {
  wbArg_t args = wbArg_read(argc, argv);
  int inputLength;
  float *hostInput1 = (float *)wbImport(wbArg_getInputFile(args, 0), &inputLength);
  float *hostInput2 = (float *)wbImport(wbArg_getInputFile(args, 1), &inputLength);
  float *hostOutput = (float *)malloc(inputLength * sizeof(float));
  thrust::device_vector<float> deviceInput1(hostInput1, hostInput1 + inputLength);
  thrust::device_vector<float> deviceInput2(hostInput2, hostInput2 + inputLength);
  thrust::device_vector<float> deviceOutput(inputLength);
  thrust::transform(deviceInput1.begin(), deviceInput1.end(), deviceInput2.begin(), deviceOutput.begin(),
                    thrust::plus<float>());
  thrust::copy(deviceOutput.begin(), deviceOutput.end(), hostOutput);
  wbSolution(args, hostOutput, inputLength);
  return 0;
}
