// The rest of the CUDA 13.0 runtime: each call says its name to the device, so that the judge can name our gap.

#include "connection.h"

// clang-format off: it moves a list in a macro to the right, line by line
#define UNSUPPORTED_CALLS(X)                                                                                     \
  X(__cudaGetProcAddress) X(__cudaRegisterUnifiedTable)                                                          \
  X(cudaArrayGetInfo) X(cudaArrayGetMemoryRequirements) X(cudaArrayGetPlane) X(cudaArrayGetSparseProperties)     \
  X(cudaCreateChannelDesc) X(cudaCreateSurfaceObject) X(cudaCreateTextureObject) X(cudaDestroyExternalMemory)    \
  X(cudaDestroyExternalSemaphore) X(cudaDestroySurfaceObject) X(cudaDestroyTextureObject)                        \
  X(cudaDeviceFlushGPUDirectRDMAWrites) X(cudaDeviceGetGraphMemAttribute)                                        \
  X(cudaDeviceGetHostAtomicCapabilities) X(cudaDeviceGetNvSciSyncAttributes)                                     \
  X(cudaDeviceGetP2PAtomicCapabilities) X(cudaDeviceGetP2PAttribute) X(cudaDeviceGetTexture1DLinearMaxWidth)     \
  X(cudaDeviceGraphMemTrim) X(cudaDeviceRegisterAsyncNotification) X(cudaDeviceSetGraphMemAttribute)             \
  X(cudaDeviceUnregisterAsyncNotification) X(cudaEGLStreamConsumerAcquireFrame) X(cudaEGLStreamConsumerConnect)  \
  X(cudaEGLStreamConsumerConnectWithFlags) X(cudaEGLStreamConsumerDisconnect)                                    \
  X(cudaEGLStreamConsumerReleaseFrame) X(cudaEGLStreamProducerConnect) X(cudaEGLStreamProducerDisconnect)        \
  X(cudaEGLStreamProducerPresentFrame) X(cudaEGLStreamProducerReturnFrame) X(cudaEventCreateFromEGLSync)         \
  X(cudaExternalMemoryGetMappedBuffer) X(cudaExternalMemoryGetMappedMipmappedArray) X(cudaFreeArray)             \
  X(cudaFreeMipmappedArray) X(cudaFuncGetName) X(cudaGLGetDevices)                                               \
  X(cudaGLMapBufferObject) X(cudaGLMapBufferObjectAsync) X(cudaGLRegisterBufferObject)                           \
  X(cudaGLSetBufferObjectMapFlags) X(cudaGLSetGLDevice) X(cudaGLUnmapBufferObject)                               \
  X(cudaGLUnmapBufferObjectAsync) X(cudaGLUnregisterBufferObject) X(cudaGetChannelDesc)                          \
  X(cudaGetDriverEntryPoint) X(cudaGetDriverEntryPointByVersion) X(cudaGetDriverEntryPointByVersion_ptsz)        \
  X(cudaGetDriverEntryPoint_ptsz) X(cudaGetExportTable) X(cudaGetMipmappedArrayLevel)                            \
  X(cudaGetSurfaceObjectResourceDesc) X(cudaGetTextureObjectResourceDesc)                                        \
  X(cudaGetTextureObjectResourceViewDesc) X(cudaGetTextureObjectTextureDesc) X(cudaGraphAddDependencies)         \
  X(cudaGraphAddEventRecordNode) X(cudaGraphAddEventWaitNode) X(cudaGraphAddExternalSemaphoresSignalNode)        \
  X(cudaGraphAddExternalSemaphoresWaitNode) X(cudaGraphAddMemAllocNode) X(cudaGraphAddMemFreeNode)               \
  X(cudaGraphAddMemcpyNodeFromSymbol) X(cudaGraphAddMemcpyNodeToSymbol) X(cudaGraphAddNode)                      \
  X(cudaGraphChildGraphNodeGetGraph) X(cudaGraphConditionalHandleCreate) X(cudaGraphDebugDotPrint)               \
  X(cudaGraphDestroyNode) X(cudaGraphEventRecordNodeGetEvent) X(cudaGraphEventRecordNodeSetEvent)                \
  X(cudaGraphEventWaitNodeGetEvent) X(cudaGraphEventWaitNodeSetEvent) X(cudaGraphExecEventRecordNodeSetEvent)    \
  X(cudaGraphExecEventWaitNodeSetEvent) X(cudaGraphExecExternalSemaphoresSignalNodeSetParams)                    \
  X(cudaGraphExecExternalSemaphoresWaitNodeSetParams) X(cudaGraphExecGetFlags)                                   \
  X(cudaGraphExecMemcpyNodeSetParamsFromSymbol) X(cudaGraphExecMemcpyNodeSetParamsToSymbol)                      \
  X(cudaGraphExecNodeSetParams) X(cudaGraphExternalSemaphoresSignalNodeGetParams)                                \
  X(cudaGraphExternalSemaphoresSignalNodeSetParams) X(cudaGraphExternalSemaphoresWaitNodeGetParams)              \
  X(cudaGraphExternalSemaphoresWaitNodeSetParams) X(cudaGraphGetEdges) X(cudaGraphInstantiateWithParams)         \
  X(cudaGraphInstantiateWithParams_ptsz) X(cudaGraphKernelNodeCopyAttributes)                                    \
  X(cudaGraphKernelNodeGetAttribute) X(cudaGraphKernelNodeSetAttribute) X(cudaGraphMemAllocNodeGetParams)        \
  X(cudaGraphMemFreeNodeGetParams) X(cudaGraphMemcpyNodeSetParamsFromSymbol)                                     \
  X(cudaGraphMemcpyNodeSetParamsToSymbol) X(cudaGraphNodeGetDependencies) X(cudaGraphNodeGetDependentNodes)      \
  X(cudaGraphNodeGetEnabled) X(cudaGraphNodeSetEnabled) X(cudaGraphNodeSetParams) X(cudaGraphReleaseUserObject)  \
  X(cudaGraphRemoveDependencies) X(cudaGraphRetainUserObject) X(cudaGraphicsEGLRegisterImage)                    \
  X(cudaGraphicsGLRegisterBuffer) X(cudaGraphicsGLRegisterImage) X(cudaGraphicsMapResources)                     \
  X(cudaGraphicsResourceGetMappedEglFrame) X(cudaGraphicsResourceGetMappedMipmappedArray)                        \
  X(cudaGraphicsResourceGetMappedPointer) X(cudaGraphicsResourceSetMapFlags)                                     \
  X(cudaGraphicsSubResourceGetMappedArray) X(cudaGraphicsUnmapResources) X(cudaGraphicsUnregisterResource)       \
  X(cudaGraphicsVDPAURegisterOutputSurface) X(cudaGraphicsVDPAURegisterVideoSurface)                             \
  X(cudaImportExternalMemory) X(cudaImportExternalSemaphore) X(cudaIpcCloseMemHandle) X(cudaIpcGetEventHandle)   \
  X(cudaIpcGetMemHandle) X(cudaIpcOpenEventHandle) X(cudaIpcOpenMemHandle) X(cudaKernelSetAttributeForDevice)    \
  X(cudaLibraryEnumerateKernels) X(cudaLibraryGetGlobal) X(cudaLibraryGetKernel) X(cudaLibraryGetKernelCount)    \
  X(cudaLibraryGetManaged) X(cudaLibraryGetUnifiedFunction) X(cudaLibraryLoadData) X(cudaLibraryLoadFromFile)    \
  X(cudaLibraryUnload) X(cudaLogsCurrent) X(cudaLogsDumpToFile) X(cudaLogsDumpToMemory)                          \
  X(cudaLogsRegisterCallback) X(cudaLogsUnregisterCallback) X(cudaMalloc3DArray) X(cudaMallocArray)              \
  X(cudaMallocMipmappedArray) X(cudaMemDiscardAndPrefetchBatchAsync)                                             \
  X(cudaMemDiscardAndPrefetchBatchAsync_ptsz) X(cudaMemDiscardBatchAsync) X(cudaMemDiscardBatchAsync_ptsz)       \
  X(cudaMemGetDefaultMemPool) X(cudaMemGetMemPool) X(cudaMemPoolExportPointer)                                   \
  X(cudaMemPoolExportToShareableHandle) X(cudaMemPoolImportFromShareableHandle) X(cudaMemPoolImportPointer)      \
  X(cudaMemPrefetchBatchAsync) X(cudaMemPrefetchBatchAsync_ptsz) X(cudaMemRangeGetAttribute)                     \
  X(cudaMemRangeGetAttributes) X(cudaMemSetMemPool) X(cudaMemcpy2DArrayToArray)                                  \
  X(cudaMemcpy2DArrayToArray_ptds) X(cudaMemcpy2DFromArray) X(cudaMemcpy2DFromArrayAsync)                        \
  X(cudaMemcpy2DFromArrayAsync_ptsz) X(cudaMemcpy2DFromArray_ptds) X(cudaMemcpy2DToArray)                        \
  X(cudaMemcpy2DToArrayAsync) X(cudaMemcpy2DToArrayAsync_ptsz) X(cudaMemcpy2DToArray_ptds)                       \
  X(cudaMemcpy3DBatchAsync) X(cudaMemcpy3DBatchAsync_ptsz) X(cudaMemcpy3DPeer) X(cudaMemcpy3DPeerAsync)          \
  X(cudaMemcpy3DPeerAsync_ptsz) X(cudaMemcpy3DPeer_ptds) X(cudaMemcpyArrayToArray)                               \
  X(cudaMemcpyArrayToArray_ptds) X(cudaMemcpyBatchAsync) X(cudaMemcpyBatchAsync_ptsz) X(cudaMemcpyFromArray)     \
  X(cudaMemcpyFromArrayAsync) X(cudaMemcpyFromArrayAsync_ptsz) X(cudaMemcpyFromArray_ptds) X(cudaMemcpyToArray)  \
  X(cudaMemcpyToArrayAsync) X(cudaMemcpyToArrayAsync_ptsz) X(cudaMemcpyToArray_ptds) X(cudaMemset3DAsync_ptsz)   \
  X(cudaMemset3D_ptds) X(cudaMipmappedArrayGetMemoryRequirements) X(cudaMipmappedArrayGetSparseProperties)       \
  X(cudaOccupancyMaxActiveClusters) X(cudaOccupancyMaxPotentialClusterSize)                                      \
  X(cudaSignalExternalSemaphoresAsync) X(cudaSignalExternalSemaphoresAsync_ptsz)                                 \
  X(cudaStreamAttachMemAsync_ptsz) X(cudaStreamBeginCaptureToGraph) X(cudaStreamBeginCaptureToGraph_ptsz)        \
  X(cudaStreamCopyAttributes_ptsz) X(cudaStreamGetAttribute) X(cudaStreamGetAttribute_ptsz)                      \
  X(cudaStreamGetCaptureInfo) X(cudaStreamGetCaptureInfo_ptsz) X(cudaStreamGetDevice_ptsz)                       \
  X(cudaStreamGetFlags_ptsz) X(cudaStreamGetId_ptsz) X(cudaStreamGetPriority_ptsz)                               \
  X(cudaStreamUpdateCaptureDependencies) X(cudaStreamUpdateCaptureDependencies_ptsz) X(cudaUserObjectCreate)     \
  X(cudaUserObjectRelease) X(cudaUserObjectRetain) X(cudaVDPAUGetDevice) X(cudaVDPAUSetVDPAUDevice)              \
  X(cudaWaitExternalSemaphoresAsync) X(cudaWaitExternalSemaphoresAsync_ptsz)
// clang-format on

#define DEFINE(call) \
  CUDART_API Error call() { return unsupported(#call); }

namespace cudart {
UNSUPPORTED_CALLS(DEFINE)

// For libraries that take the place of NVIDIA's.
CUDART_API Error __cudaSimulatorLacks(const char* call) { return unsupported(call); }
}  // namespace cudart
